# Footnote as a service: the locked runtime dependencies only, no compiler, no root, nothing written but /data and /tmp.
FROM python:3.11.14-slim-trixie AS built
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy VIRTUAL_ENV=/venv
WORKDIR /footnote
COPY requirements.lock pyproject.toml README.md ./
RUN python -m venv /venv \
 && awk '/^uv==/ { uv = 1 } uv { print } uv && !/\\$/ { exit }' requirements.lock > uv.lock \
 && /venv/bin/python -m pip install --quiet --no-deps --require-hashes -r uv.lock \
 && /venv/bin/uv pip install --quiet --constraint requirements.lock setuptools \
 && /venv/bin/uv pip install --quiet --constraint requirements.lock --extra multilingual -r pyproject.toml
COPY footnote.py ./
COPY rag rag
COPY api api
COPY eval eval
COPY prompts prompts
RUN /venv/bin/uv pip install --quiet --no-deps --no-build-isolation --editable . \
 && /venv/bin/python -m compileall -q footnote.py rag api eval \
 && rm /venv/bin/uv /venv/bin/uvx

FROM python:3.11.14-slim-trixie
COPY --from=built /venv /venv
COPY --from=built /footnote /footnote
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin footnote && install -d -o footnote -g footnote /data
ENV PATH=/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 FOOTNOTE_DATA=/data HOME=/tmp
USER 10001
WORKDIR /footnote
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
CMD ["footnote", "serve", "--host", "0.0.0.0", "--port", "8000"]
