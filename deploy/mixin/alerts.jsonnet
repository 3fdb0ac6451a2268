// Prometheus takes the output as a file of rules, since JSON is YAML.
(import 'mixin.libsonnet').prometheusAlerts
