module dtjob.dev/benchmarks/peers/training-operator

go 1.26.0

tool github.com/kubeflow/training-operator/cmd/training-operator.v1

require github.com/kubeflow/training-operator v1.9.4
