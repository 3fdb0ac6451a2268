// One file for each board: jsonnet -m FOLDER dashboards.jsonnet
(import 'mixin.libsonnet').grafanaDashboards
