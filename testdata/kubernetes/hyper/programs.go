package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	kubectl "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubescheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	adm "k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
	node "k8s.io/kubernetes/cmd/kubelet/app"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

// Each of these does what the main function of its program does.

func apiServer()         { os.Exit(cli.Run(apiserver.NewAPIServerCommand())) }
func controllerManager() { os.Exit(cli.Run(controllers.NewControllerManagerCommand())) }
func proxy()             { os.Exit(cli.Run(kubeproxy.NewProxyCommand())) }
func scheduler()         { os.Exit(cli.Run(kubescheduler.NewSchedulerCommand())) }
func admin()             { adm.HandleError(kubeadm.Run()) }
func kubelet()           { os.Exit(cli.Run(node.NewKubeletCommand(context.Background()))) }

func control() {
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) // before the command exists, which logs already
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		kubectl.CheckErr(err)
	}
}

func fakeNodes() {
	// Every command has these flags, and Kubernetes' version is no flag like cobra's.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ContinueOnError)
	global := pflag.NewFlagSet("global", pflag.ContinueOnError)
	global.ParseErrorsAllowlist.UnknownFlags = true
	global.Usage = func() {}
	ctx, logger := log.InitFlags(signals.SetupSignalContext(), global)
	ctx, err := config.InitFlags(ctx, global)
	if err != nil {
		logger.Error("Init config flags", "err", err)
		os.Exit(1)
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(global)
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("Execute exit", "err", err)
		os.Exit(1)
	}
}
