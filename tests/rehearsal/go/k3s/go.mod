module gpunode.example/rehearsal/k3s

go 1.26.0

require (
	github.com/klauspost/compress v1.18.0
	gopkg.in/yaml.v3 v3.0.1
)

require github.com/pelletier/go-toml/v2 v2.2.4
