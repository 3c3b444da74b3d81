{{- /* Labels of everything; a dictionary with the root context and a part. */ -}}
{{- define "sotto.labels" -}}
app.kubernetes.io/name: sotto
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "sotto.name" -}}
{{ .Release.Name }}-{{ .Values.run.name }}
{{- end }}

{{- define "sotto.image" -}}
{{ .Values.image.repository }}{{ if hasPrefix "sha256:" .Values.image.tag }}@{{ else }}:{{ end }}{{ .Values.image.tag }}
{{- end }}

{{- /* What the pods have in common: no rights, and no token of a service account. */ -}}
{{- define "sotto.pod" -}}
restartPolicy: Never
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ int .Values.user }}
  runAsGroup: {{ int .Values.user }}
  fsGroup: {{ int .Values.user }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "sotto.container" -}}
name: sotto
image: {{ include "sotto.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
terminationMessagePolicy: File # never the log
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "sotto.probe" -}}
httpGet: {path: /healthz, port: health}
periodSeconds: 20
timeoutSeconds: 5
failureThreshold: 6
{{- end }}

{{- /* A pod that wrong input or the budget ended is not started again; one that a node lost costs no try. */ -}}
{{- define "sotto.failures" -}}
podReplacementPolicy: Failed
podFailurePolicy:
  rules:
    - action: Ignore
      onPodConditions:
        - {type: DisruptionTarget, status: "True"}
    - action: FailJob
      onExitCodes: {containerName: sotto, operator: In, values: [2, 3]}
{{- end }}
