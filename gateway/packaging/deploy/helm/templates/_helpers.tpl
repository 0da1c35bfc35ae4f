{{- define "tabern.name" -}}
{{- if contains "tabern" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-tabern" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
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

{{/* Whether core keeps nothing on a volume. */}}
{{- define "tabern.isShared" -}}
{{- if and .Values.database.secret .Values.blobs.url }}true{{ end }}
{{- end }}

{{/* Further settings of a role. */}}
{{- define "tabern.env" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | quote }}
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
