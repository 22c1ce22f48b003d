// Command hyper is every program of a Kubernetes cluster in one binary, a
// fourth of the size of all of them. Which of them it is, the name says that it
// was started by (a symbolic link), or else its first argument:
//
//	hyper kube-apiserver --version
//
// hyper names lists them, one a line.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // the time zones of CronJobs

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

// programs maps the name of each program to its main function, which reads
// os.Args and may return when it is done.
var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          apiServer,
	"kube-controller-manager": controllerManager,
	"kube-proxy":              proxy,
	"kube-scheduler":          scheduler,
	"kubeadm":                 admin,
	"kubectl":                 control,
	"kubelet":                 kubelet,
	"kwok":                    fakeNodes,
}

func main() {
	run := programs[filepath.Base(os.Args[0])]
	if run == nil && len(os.Args) > 1 {
		if run = programs[os.Args[1]]; run != nil {
			os.Args = os.Args[1:]
		}
	}
	if len(os.Args) == 2 && os.Args[1] == "names" {
		for _, name := range slices.Sorted(maps.Keys(programs)) {
			fmt.Println(name)
		}
		return
	}
	if run == nil {
		names := slices.Sorted(maps.Keys(programs))
		fmt.Fprintf(os.Stderr, "usage: %s PROGRAM ARGUMENT…, where PROGRAM is one of %s\n", os.Args[0], strings.Join(names, ", "))
		os.Exit(2)
	}
	run()
}
