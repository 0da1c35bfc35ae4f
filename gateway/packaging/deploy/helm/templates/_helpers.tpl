{{- define "tabern.name" -}}
{{- $name := ternary .Release.Name (printf "%s-tabern" .Release.Name) (contains "tabern" .Release.Name) }}
{{- /* a release may have dots, a service may not */}}
{{- $name | replace "." "-" | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* Labels that select the pods of a role: list of the root and the role. */}}
{{- define "tabern.selector" -}}
app.kubernetes.io/name: tabern
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "tabern.labels" -}}
{{ include "tabern.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end }}

{{- define "tabern.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- define "tabern.coreAddress" -}}
{{ include "tabern.name" . }}-core.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}:7447
{{- end }}

{{/* Names of runners' pods are below it. */}}
{{- define "tabern.runnerDomain" -}}
{{ include "tabern.name" . }}-runner.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end }}

{{/* Whether core keeps nothing on a volume. */}}
{{- define "tabern.isShared" -}}
{{- if and .Values.database.secret .Values.blobs.url }}true{{ end }}
{{- end }}

{{/*
Settings of a role: those of the chart, then those of its values: list of the root and the role. The
chart's own cannot be set twice: Kubernetes refuses that, or takes the last.
*/}}
{{- define "tabern.env" -}}
{{- $role := index . 1 }}
{{- $own := include (printf "tabern.env.%s" $role) (index . 0) }}
{{- $fixed := list "TABERN_DATA" "TABERN_CACHE_DIR" "TABERN_PORT" "TABERN_TLS_CERT_FILE" "TABERN_TLS_KEY_FILE" }}
{{- $own }}
{{- range $name, $value := (index (index . 0).Values $role).env }}
{{- if or (has $name $fixed) (contains (printf "- name: %s\n" $name) $own) }}
{{- fail (printf "%s.env.%s: the chart sets it; values.yaml has what can be changed" $role $name) }}
{{- end }}
- name: {{ $name }}
  {{- /* a number of a file of values is a float: 3600000 would be 3.6e+06 */}}
  value: {{ ternary (int64 $value) $value (kindIs "float64" $value) | quote }}
{{- end }}
{{- end }}

{{/* How a role reaches core, and what proves that it may: list of the root and the role. */}}
{{- define "tabern.caller" -}}
- name: TABERN_CORE
  value: {{ include "tabern.coreAddress" (index . 0) | quote }}
- name: TABERN_CORE_CA_FILE
  value: /secrets/tls/ca.crt
- name: TABERN_CORE_CLIENT_CERT_FILE
  value: /secrets/tls/tls.crt
- name: TABERN_CORE_CLIENT_KEY_FILE
  value: /secrets/tls/tls.key
- name: TABERN_{{ index . 1 | upper }}_TOKEN_FILE
  value: /secrets/tokens/{{ index . 1 }}-token
{{- end }}

{{/* Volumes of a role's certificates and of the tokens that it may read: root, role, keys. */}}
{{- define "tabern.secretVolumes" -}}
- name: tls
  secret:
    secretName: {{ index (index . 0).Values.secrets (index . 1) }}
    defaultMode: 0440
- name: tokens
  secret:
    secretName: {{ (index . 0).Values.secrets.tokens }}
    defaultMode: 0440
    items:
      {{- range index . 2 }}
      - key: {{ . }}
        path: {{ . }}
      {{- end }}
{{- end }}

{{- define "tabern.secretMounts" -}}
- name: tls
  mountPath: /secrets/tls
  readOnly: true
- name: tokens
  mountPath: /secrets/tokens
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- end }}

{{/* Of core and gateways, which run nobody's code. */}}
{{- define "tabern.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "tabern.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "tabern.podPlace" -}}
{{- with .nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* One pod of a role a node, where there are enough nodes: list of the root and the role. */}}
{{- define "tabern.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{ include "tabern.selector" . | nindent 8 }}
{{- end }}
