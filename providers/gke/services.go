package gke

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/cloud"
)

// requires are the services that each kind of resource calls.
var requires = map[string][]string{
	"cluster":       {cloud.ContainerService, cloud.ComputeService},
	"node_pool":     {cloud.ContainerService, cloud.ComputeService},
	"disk":          {cloud.ComputeService},
	"disk_snapshot": {cloud.ComputeService},
	"firewall_rule": {cloud.ComputeService},
	"filestore":     {cloud.FileService, cloud.ComputeService}, // it is in a network
}

// checkServices reports in a plan the services that a kind of resource lacks.
// Without the right to read services there is one note: the calls themselves will
// fail with the reason.
func (j job) checkServices(ctx context.Context, kind string) {
	project := j.cloud.Project
	missing, err := j.services.Missing(ctx, project, requires[kind])
	call := providers.CallFrom(ctx)
	switch {
	case err != nil && j.silent(err):
	case err != nil:
		if _, said := j.noted.LoadOrStore("services of "+project, true); !said {
			call.AddNote(providers.Note{Kind: providers.NoteFact, Text: fmt.Sprintf("It could not be checked which APIs the project %s has enabled: %s", project, sentence(err))})
		}
	case len(missing) > 0 && j.enable:
		call.AddNote(providers.Note{Kind: providers.NoteFact, Text: fmt.Sprintf("The apply enables %s in the project %s. It stays enabled.", strings.Join(missing, ", "), project)})
	case len(missing) > 0:
		addError(j.diags, path.Empty(), "It cannot be made", cloud.DisabledError(project, missing))
	}
}

// enableServices enables what a kind of resource lacks, if the provider block says so.
func (j job) enableServices(ctx context.Context, kind string) error {
	if !j.enable {
		return nil
	}
	return j.services.Enable(ctx, j.cloud.Project, requires[kind])
}
