{{- define "recsys-monitor.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The alerts name the job `recsys-monitor`. The ServiceMonitor takes the job from the first of these labels. */}}
{{- define "recsys-monitor.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "recsys-monitor.labels" -}}
{{ include "recsys-monitor.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Refuse a config with which the pod could not start, and say what to write. */}}
{{- define "recsys-monitor.checked" -}}
{{- if and .Values.demo .Values.config -}}
{{- fail "set either `config` or `demo`, not both" -}}
{{- else if not .Values.demo -}}
{{- if not .Values.config -}}
{{- fail "set `config` to the text of your recsys-monitor.yaml (--set-file config=recsys-monitor.yaml), or try the chart with `demo: true`" -}}
{{- end -}}
{{- $config := fromYaml .Values.config -}}
{{- if hasKey $config "Error" -}}
{{- fail (printf "`config` is not YAML: %s" $config.Error) -}}
{{- end -}}
{{- $server := get $config "server" -}}
{{- $listen := ternary $server dict (kindIs "map" $server) | dig "listen" "" | toString -}}
{{- if not (regexMatch `^(\$\{RECSYS_LISTEN(:-[^}]*)?\}|(0\.0\.0\.0|\[::\])?:9108)$` $listen) -}}
{{- fail "write `server: {listen: \"${RECSYS_LISTEN}\"}` into `config`, with the quotes: the port is 9108, and at the default address, Kubernetes and Prometheus cannot reach the monitor" -}}
{{- end -}}
{{- if not (hasPrefix "/var/lib/recsys-monitor/" (printf "%s/" (dig "state" "" $config | toString | clean))) -}}
{{- fail "write `state: /var/lib/recsys-monitor` into `config`: everything else is read-only" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "recsys-monitor.probe" -}}
{{- if eq .probe "command" -}}
exec: {command: [python, -m, monitor.service.probe]}
{{- else -}}
httpGet: {path: {{ .path }}, port: http, scheme: {{ upper .probe }}}
{{- end -}}
{{- end -}}
