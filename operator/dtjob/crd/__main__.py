"""`python -m dtjob.crd`: writes the CustomResourceDefinition's files, or with `--check` compares them."""

import sys

from dtjob.crd.definition import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
