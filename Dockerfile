# The mtbridge worker with an OpenCL device for the processor inside (PoCL), for Linux x86-64.
#
#   docker build -t mtbridge .
#   docker run --rm -p 127.0.0.1:5555:5555 mtbridge
#
# Any slim Debian with python3, its venv module and pip serves as BASE. Both stages start from it, so the interpreter that
# the virtual environment points to is the same one.
ARG BASE=python:3.12-slim-bookworm

FROM ${BASE} AS build
WORKDIR /source
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY mtbridge mtbridge
COPY kernels kernels
COPY mql5 mql5
# The environment gets no pip of its own. Of ziglang only the linker inside `zig` is used, so its C library sources
# (230 MB) stay behind, as do the test suites and C headers of the larger packages.
RUN python3 -m venv --without-pip /opt/mtbridge \
 && python3 -m pip --python /opt/mtbridge/bin/python install --no-cache-dir '.[cpu]' \
 && cd /opt/mtbridge/lib/python3*/site-packages \
 && rm -rf ziglang/lib ziglang/doc pyarrow/include pyarrow/tests pandas/tests \
 && find numpy -type d -name tests -prune -exec rm -rf {} +

FROM ${BASE}
COPY --from=build /opt/mtbridge /opt/mtbridge
# The cache of built kernels must be writable. Its mode is 1777 because podman gives a tmpfs the mode of the folder below it,
# and root as its owner.
RUN useradd --uid 10001 --user-group --create-home --home-dir /home/mtbridge --shell /usr/sbin/nologin mtbridge \
 && install --directory --mode 1777 /var/cache/mtbridge
ENV PATH=/opt/mtbridge/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/var/cache/mtbridge
USER 10001:10001
WORKDIR /home/mtbridge
EXPOSE 5555
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["mtbridge", "ping", "--endpoint", "tcp://127.0.0.1:5555"]
# Exec form: the worker itself gets SIGTERM. A container's own loopback cannot be published, hence 0.0.0.0; there is no
# authentication yet, so publish the port on a loopback address of the host only.
CMD ["mtbridge", "serve", "--bind", "tcp://0.0.0.0:5555", "--insecure"]
