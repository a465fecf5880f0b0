module gpunode.example/rehearsal/k3s

go 1.26.0

require (
	github.com/klauspost/compress v1.18.0
	gopkg.in/yaml.v3 v3.0.1
)
