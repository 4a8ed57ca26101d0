{{- define "dtjob.fullname" -}}
{{- $name := .Values.nameOverride | default "dtjob" }}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}{{ else if contains $name .Release.Name }}{{ .Release.Name | trunc 53 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name $name | trunc 53 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "dtjob.selector" -}}
app.kubernetes.io/name: dtjob
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "dtjob.ownLabels" -}}
{{ include "dtjob.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "dtjob.labels" -}}
{{ merge (include "dtjob.ownLabels" . | fromYaml) .Values.commonLabels | toYaml }}
{{- end }}

{{- /* The annotations of an object, of [the context, those that it has beside the common ones]; nothing if none. */ -}}
{{- define "dtjob.annotations" -}}
{{- with merge (dict) (last .) (first .).Values.commonAnnotations -}}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "dtjob.serviceAccount" -}}
{{- with .Values.rbac.serviceAccount }}{{ if .create }}{{ .name | default (include "dtjob.fullname" $) }}{{ else }}{{ .name }}{{ end }}{{ end }}
{{- end }}

{{- define "dtjob.image" -}}
{{- with .Values.image }}{{ with .registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ with .digest }}@{{ . }}{{ end }}{{ end }}
{{- end }}

{{- /* A cluster-wide object belongs to one release of one namespace. */ -}}
{{- define "dtjob.clusterName" -}}
{{ printf "%s-%s" .Release.Namespace (include "dtjob.fullname" .) }}
{{- end }}

{{- /* What pod templates of jobs leave out, as `--default-pod` takes it; an empty object if nothing. */ -}}
{{- define "dtjob.podDefaults" -}}
{{- $found := dict }}
{{- $env := .Values.jobs.env }}
{{- if ne .Values.jobs.log.level "info" }}{{ $env = append $env (dict "name" "DTJOB_LOG_LEVEL" "value" .Values.jobs.log.level) }}{{ end }}
{{- if ne .Values.jobs.log.format "logfmt" }}{{ $env = append $env (dict "name" "DTJOB_LOG_FORMAT" "value" .Values.jobs.log.format) }}{{ end }}
{{- with $env }}{{ $_ := set $found "env" . }}{{ end }}
{{- $fields := dict "podAnnotations" "annotations" "imagePullSecrets" "imagePullSecrets" "nodeSelector" "nodeSelector" "tolerations" "tolerations" "priorityClassName" "priorityClassName" "resources" "resources" "podSecurityContext" "securityContext" }}
{{- range $value, $field := $fields }}
{{- with get $.Values.jobs $value }}{{ $_ := set $found $field . }}{{ end }}
{{- end }}
{{- toJson $found }}
{{- end }}

{{- /* Exactly the calls that operator/dtjob/kube/calls/client.py and kopf make. */ -}}
{{- define "dtjob.rules" -}}
- apiGroups: [training.dtjob.dev]
  resources: [distributedtrainingjobs]
  verbs: [list, watch, delete]  # delete: ttlSecondsAfterFinished
- apiGroups: [training.dtjob.dev]
  resources: [distributedtrainingjobs/status]
  verbs: [update]
# Only asked for where OwnerReferencesPermissionEnforcement is on: children block their job's foreground deletion.
- apiGroups: [training.dtjob.dev]
  resources: [distributedtrainingjobs/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, update]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, update]
# Never list or watch, which cannot be held to a label and would show every ConfigMap: names are known.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create]
# For checkpoint.storage.volumeClaimTemplate.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create, patch]
{{- if .Values.kueue.enabled }}
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads/status]
  verbs: [patch]
{{- end }}
{{- with .Values.gangs.providers }}
{{- $groups := dict "Kubernetes" "scheduling.k8s.io" "Volcano" "scheduling.volcano.sh" "Coscheduling" "scheduling.x-k8s.io" }}
# Listed and watched if some job has a gang, made before its pods, deleted when it is suspended or has ended.
- apiGroups: [{{ range $index, $name := . }}{{ if $index }}, {{ end }}{{ get $groups $name }}{{ end }}]
  resources: [podgroups]
  verbs: [get, list, watch, create, update, delete]
{{- end }}
{{- end }}

{{- /* What of the cluster's own a queued job's place depends on. */ -}}
{{- define "dtjob.kueueRules" -}}
- apiGroups: [kueue.x-k8s.io]
  resources: [clusterqueues, localqueues, resourceflavors, workloadpriorityclasses]
  verbs: [get]
- apiGroups: [scheduling.k8s.io]
  resources: [priorityclasses]
  verbs: [get]
{{- end }}

{{- /* Fails on a peer that an API server refuses, and on a selector that it takes for another; [its name, the list]. */ -}}
{{- define "dtjob.checkPeers" -}}
{{- $name := first . }}
{{- range $index, $peer := last . }}
{{- if and $peer.ipBlock (gt (len $peer) 1) }}
{{- fail (printf "%s[%d]: ipBlock stands alone in its peer; write the selectors as another peer of the list" $name $index) }}
{{- end }}
{{- range $field, $selector := omit $peer "ipBlock" }}
{{- range $other := keys (omit $selector "matchLabels" "matchExpressions") | sortAlpha }}
{{- fail (printf "%s[%d].%s.%s: a selector has only matchLabels and matchExpressions; write {%s: {matchLabels: {app: prometheus}}}, say" $name $index $field $other $field) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The head of an object of the Prometheus operator, of [the context, its kind, its value below metrics]. Fails if the cluster does not have the kind. */ -}}
{{- define "dtjob.monitoring" -}}
{{- $context := index . 0 }}{{ $kind := index . 1 }}{{ $value := index . 2 }}
{{- $served := printf "monitoring.coreos.com/v1/%s" $kind }}
{{- if not ($context.Capabilities.APIVersions.Has $served) }}
{{- fail (printf "metrics.%s.enabled: the cluster has no %ss. Install the Prometheus operator, which brings their definition, or set it to false (for `helm template`: --api-versions %s)" $value $kind $served) }}
{{- end -}}
apiVersion: monitoring.coreos.com/v1
kind: {{ $kind }}
metadata:
  name: {{ include "dtjob.fullname" $context | quote }}
  namespace: {{ $context.Release.Namespace | quote }}
  labels: {{- merge (include "dtjob.labels" $context | fromYaml) (get $context.Values.metrics $value).labels | toYaml | nindent 4 }}
  {{- include "dtjob.annotations" (list $context dict) | nindent 2 }}
{{- end }}
