//go:build e2e

package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/stokehq/stoke/providers/filetest"
)

// reattached serves our provider stokehq/test as a plugin that Terraform finds
// through the variable which is returned: our providers run under Terraform.
func reattached(t *testing.T) string {
	t.Helper()
	t.Setenv("TF_LOG_SDK", "off")
	ctx, stop := context.WithCancel(context.Background())
	ready, closed := make(chan *plugin.ReattachConfig), make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		failed <- tf6server.Serve(filetest.Source, providerserver.NewProtocol6(filetest.New()),
			tf6server.WithDebug(ctx, ready, closed), tf6server.WithGoPluginLogger(hclog.NewNullLogger()))
	}()
	t.Cleanup(func() { stop(); <-closed })
	select {
	case c := <-ready:
		text, err := json.Marshal(map[string]any{filetest.Source: map[string]any{
			"Protocol": string(c.Protocol), "ProtocolVersion": c.ProtocolVersion, "Pid": c.Pid, "Test": true,
			"Addr": map[string]string{"Network": c.Addr.Network(), "String": c.Addr.String()},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return "TF_REATTACH_PROVIDERS=" + string(text)
	case err := <-failed:
		t.Fatal(err)
	}
	return ""
}
