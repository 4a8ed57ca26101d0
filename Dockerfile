# SPDX-License-Identifier: Apache-2.0
# The operator. From the repository's root: make images, or docker build -t dtjob-operator:dev .
#
# A build by hand needs BuildKit (before Docker 23: DOCKER_BUILDKIT=1), and --build-arg BASE=... if no registry answers.
# Any base with Python 3.11 to 3.13, its venv module and ca-certificates will do. Where pip needs a configuration or a
# certificate of yours, give them as secrets, which no layer keeps: --secret id=pip,src=pip.conf --secret id=ca,src=ca.crt,
# where pip.conf says `cert = /run/secrets/ca`.
ARG BASE=python:3.11-slim-bookworm

# What builds a wheel of our code, into a tree of its own. Its /opt/venv is empty: the code is installed without asking.
FROM ${BASE} AS code
WORKDIR /build
COPY constraints.txt ./
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca \
    python3 -m venv /opt/build && python3 -m venv --without-pip /opt/venv \
    && PIP_CONFIG_FILE=/run/secrets/pip /opt/build/bin/pip install -c constraints.txt 'setuptools>=77'
COPY LICENSE README.md pyproject.toml ./
COPY operator ./operator
RUN /opt/build/bin/pip wheel --quiet --no-deps --no-index --no-build-isolation -w dist . \
    && /opt/build/bin/pip --python /opt/venv/bin/python3 install --quiet --no-deps --no-index --root /code dist/*.whl

# The image: first its dependencies, which only a change of pyproject.toml or constraints.txt builds again. No pip stays.
FROM ${BASE}
COPY constraints.txt pyproject.toml /opt/dtjob/
RUN --mount=type=secret,id=pip --mount=type=secret,id=ca \
    python3 -m venv /tmp/build && python3 -m venv --without-pip /opt/venv && cd /opt/dtjob \
    && python3 -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
print(*project["dependencies"], *project["optional-dependencies"]["operator"], sep="\n")' >/tmp/build/requirements.txt \
    && PIP_CONFIG_FILE=/run/secrets/pip /tmp/build/bin/pip --python /opt/venv/bin/python3 install --no-cache-dir \
        --no-compile -c constraints.txt -r /tmp/build/requirements.txt \
    && python3 -m compileall -q /opt/venv/lib \
    && rm -r /tmp/build
# A uid without a name and a home of its own must do: kopf asks for the name, the kubeconfig is looked for in the home.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    USER=dtjob
COPY --from=code /code /
# Nothing is written to the image's file system: it may be read-only.
USER 1000:1000
WORKDIR /
ENTRYPOINT ["dtjob"]
CMD ["operator"]
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="dtjob operator" \
      org.opencontainers.image.description="A Kubernetes operator for distributed TensorFlow training" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
