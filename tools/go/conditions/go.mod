module dtjob.dev/tools/conditions

go 1.26.0

require (
	github.com/tidwall/gjson v1.18.0
	k8s.io/apimachinery v0.36.3
)

require (
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.0 // indirect
	k8s.io/klog/v2 v2.140.0 // indirect
	k8s.io/utils v0.0.0-20260210185600-b8788abfbbc2 // indirect
)
