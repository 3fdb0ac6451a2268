# Pinned by version and by the digest of the image for all platforms. To upgrade, change both lines together.
FROM python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1 AS build
WORKDIR /build
COPY requirements.lock ./
# Every file is held against the hashes of the lock; what is not in this folder afterwards cannot be installed below.
RUN pip download --quiet --require-hashes --requirement requirements.lock --dest /wheels
COPY pyproject.toml README.md LICENSE ./
COPY monitor ./monitor
COPY recsys_monitor ./recsys_monitor
COPY rules ./rules
COPY docs/runbooks ./docs/runbooks
COPY grafana/dashboards ./grafana/dashboards
COPY deploy/systemd ./deploy/systemd
RUN pip install --quiet --no-index --find-links /wheels hatchling \
    && pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir /wheels . \
    && python -m venv /opt/recsys-monitor \
    && /opt/recsys-monitor/bin/pip install --quiet --no-index --find-links /wheels 'recsys-monitor[lake]'

FROM python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1
RUN useradd --system --uid 10001 --user-group --home-dir /var/lib/recsys-monitor --create-home recsys
COPY --from=build /opt/recsys-monitor /opt/recsys-monitor
ENV PATH=/opt/recsys-monitor/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    RECSYS_LISTEN=0.0.0.0:9108 \
    RECSYS_HEALTH_URL=http://127.0.0.1:9108/healthz
WORKDIR /var/lib/recsys-monitor
USER 10001:10001
VOLUME /var/lib/recsys-monitor
EXPOSE 9108
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-m", "monitor.service.probe"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["recsys-monitor"]
CMD ["run", "--config", "/etc/recsys-monitor/recsys-monitor.yaml"]
