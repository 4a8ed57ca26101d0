#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# runc for a machine whose root lacks CAP_SYS_RESOURCE. Docker's --privileged asks for all capabilities of the kernel,
# and runc then fails with "unable to apply caps". This removes that capability from the files that runc is about to read.
previous=
for argument in "$@"; do
    case $previous in
        --bundle | -b) file=$argument/config.json ;;
        --process | -p) file=$argument ;;
        *) file= ;;
    esac
    if [ -n "$file" ] && [ -f "$file" ]; then
        sed -i 's/"CAP_SYS_RESOURCE",//g; s/,"CAP_SYS_RESOURCE"//g' "$file"
    fi
    previous=$argument
done
exec runc "$@"
