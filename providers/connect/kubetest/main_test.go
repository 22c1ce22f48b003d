package kubetest

import (
	"os"
	"testing"
)

var shared = Shared{Options: Options{Nodes: []Node{{Name: "plain"}, GPUNode("gpu", 2)}}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
