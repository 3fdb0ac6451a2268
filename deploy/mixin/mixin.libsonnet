// The alerts and boards of recsys-monitor as a monitoring mixin. README.md beside this file says how to use it.
{
  _config+:: {
    // The name of the job that scrapes the monitor.
    jobName: 'recsys-monitor',
    // The address at which your team reads the repository, without a slash at the end. Alerts link to the runbooks there.
    // If it is empty, the external label `recsys_docs` of Prometheus is used.
    docsUrl: '',
    // The boards have this tag, by which they find each other.
    dashboardTag: 'recsys-monitor',
    dashboardRefresh: '1m',
    dashboardTimezone: 'browser',
  },

  local config = self._config,

  local alert(rule) = rule {
    expr: std.strReplace(rule.expr, 'job="recsys-monitor"', 'job="%s"' % config.jobName),
    annotations+: if config.docsUrl == '' then {} else {
      runbook_url: '%s/docs/runbooks/%s.md' % [config.docsUrl, rule.alert],
    },
  },

  prometheusAlerts+:: {
    groups+: [
      group { rules: [alert(rule) for rule in group.rules] }
      for group in (import 'alerts.json').groups
    ],
  },

  // The alerts read the gauges themselves: no series has to be recorded first.
  prometheusRules+:: { groups+: [] },

  local board(json) = json {
    tags: [config.dashboardTag],
    links: [
      if link.type == 'dashboards' then link { tags: [config.dashboardTag] } else link
      for link in json.links
    ],
    refresh: config.dashboardRefresh,
    timezone: config.dashboardTimezone,
  },

  grafanaDashboards+:: {
    'recsys-anomalies.json': board(import '../../grafana/dashboards/anomalies.json'),
    'recsys-experiments.json': board(import '../../grafana/dashboards/experiments.json'),
    'recsys-feedback.json': board(import '../../grafana/dashboards/feedback.json'),
    'recsys-models.json': board(import '../../grafana/dashboards/models.json'),
    'recsys-overview.json': board(import '../../grafana/dashboards/overview.json'),
    'recsys-recommender.json': board(import '../../grafana/dashboards/recommender.json'),
    'recsys-rules.json': board(import '../../grafana/dashboards/rules.json'),
  },
}
