module gpunode/pause

go 1.26
