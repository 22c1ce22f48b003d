package gcptest

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	serviceusage "google.golang.org/api/serviceusage/v1"
)

// titles are the services as people know them.
var titles = map[string]string{
	"container.googleapis.com":    "Kubernetes Engine API",
	"compute.googleapis.com":      "Compute Engine API",
	"file.googleapis.com":         "Cloud Filestore API",
	"serviceusage.googleapis.com": "Service Usage API",
}

// isEnabled refuses a call of a service that the project has not enabled.
func (c *Cloud) isEnabled(call *Call) error {
	name, _, dotted := strings.Cut(call.Method, ".")
	if !dotted {
		name = "container"
	}
	name += ".googleapis.com"
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.enabled == nil || c.enabled[name] || name == "serviceusage.googleapis.com" {
		return nil
	}
	return detailed(codes.PermissionDenied, fmt.Sprintf(
		"%s has not been used in project %s before or it is disabled. Enable it by visiting https://console.developers.google.com/apis/api/%s/overview?project=%s then retry. If you enabled this API recently, wait a few minutes for the action to propagate to our systems and retry.",
		titles[name], c.projectNumber(), name, c.projectNumber()),
		&errdetails.ErrorInfo{Reason: "SERVICE_DISABLED", Domain: "googleapis.com", Metadata: map[string]string{
			"service": name, "serviceTitle": titles[name], "consumer": "projects/" + c.projectNumber(), "containerInfo": c.projectNumber(),
		}})
}

func (c *Cloud) service(name string) *serviceusage.GoogleApiServiceusageV1Service {
	state := "DISABLED"
	if c.enabled == nil || c.enabled[name] {
		state = "ENABLED"
	}
	parent := "projects/" + c.projectNumber()
	return &serviceusage.GoogleApiServiceusageV1Service{
		Name: parent + "/services/" + name, Parent: parent, State: state,
		Config: &serviceusage.GoogleApiServiceusageV1ServiceConfig{Name: name, Title: titles[name]},
	}
}

// ofProject refuses what is not the project's: path is "projects/p" or longer.
func (c *Cloud) ofProject(path string) error {
	parts := strings.Split(path, "/")
	if len(parts) < 2 || parts[0] != "projects" || (parts[1] != c.options.Project && parts[1] != c.projectNumber()) {
		return detailed(codes.PermissionDenied, "Permission denied to get service ["+last(path)+"]. Help Token: none")
	}
	return nil
}

func (c *Cloud) getService(r *request) (any, error) {
	if err := c.ofProject(r.path["name"]); err != nil {
		return nil, err
	}
	return c.service(last(r.path["name"])), nil
}

func (c *Cloud) getServices(r *request) (any, error) {
	if err := c.ofProject(r.path["parent"]); err != nil {
		return nil, err
	}
	names := r.Query["names"]
	if len(names) == 0 || len(names) > 30 {
		return nil, invalid("names must have between 1 and 30 services, not %d.", len(names))
	}
	out := &serviceusage.BatchGetServicesResponse{}
	for _, name := range names {
		if !strings.HasPrefix(name, r.path["parent"]+"/services/") {
			return nil, invalid("Service %q is not one of %q.", name, r.path["parent"])
		}
		out.Services = append(out.Services, c.service(last(name)))
	}
	return out, nil
}

func (c *Cloud) listServices(r *request) (any, error) {
	if err := c.ofProject(r.path["parent"]); err != nil {
		return nil, err
	}
	filter := r.Query.Get("filter")
	if filter != "" && filter != "state:ENABLED" && filter != "state:DISABLED" {
		return nil, invalid("Invalid filter %q.", filter)
	}
	out := &serviceusage.ListServicesResponse{}
	for name := range titles {
		if s := c.service(name); filter == "" || filter == "state:"+s.State {
			out.Services = append(out.Services, s)
		}
	}
	return out, nil
}

func (c *Cloud) enableService(r *request) (any, error) {
	if err := c.ofProject(r.path["name"]); err != nil {
		return nil, err
	}
	return c.enable([]string{last(r.path["name"])}, r.path["name"]), nil
}

func (c *Cloud) enableServices(r *request) (any, error) {
	if err := c.ofProject(r.path["parent"]); err != nil {
		return nil, err
	}
	wanted := &serviceusage.BatchEnableServicesRequest{}
	if err := r.decode(wanted); err != nil {
		return nil, err
	}
	if len(wanted.ServiceIds) == 0 || len(wanted.ServiceIds) > 20 {
		return nil, invalid("service_ids must have between 1 and 20 services, not %d.", len(wanted.ServiceIds))
	}
	return c.enable(wanted.ServiceIds, r.path["parent"]+"/services"), nil
}

func (c *Cloud) enable(names []string, target string) *serviceusage.Operation {
	o := c.begin("serviceusage", "", "enable", target, func(half error) error {
		for _, name := range names {
			if half == nil && c.enabled != nil {
				c.enabled[name] = true
			}
		}
		return half
	})
	return c.serviceOperation(o)
}

func (c *Cloud) serviceOperation(o *operation) *serviceusage.Operation {
	out := &serviceusage.Operation{Name: "operations/" + o.name, Done: o.done()}
	switch {
	case !o.done():
	case o.err != nil:
		out.Error = &serviceusage.Status{Code: int64(codes.Internal), Message: o.err.Error()}
	default:
		answer := map[string]any{"@type": "type.googleapis.com/google.api.serviceusage.v1.EnableServiceResponse", "service": c.service(last(o.target))}
		out.Response, _ = json.Marshal(answer)
	}
	return out
}

func (c *Cloud) getServiceOperation(r *request) (any, error) {
	o := c.findOperation("serviceusage", "", last(r.path["name"]))
	if o == nil {
		return nil, fileNotFound(r.path["name"])
	}
	r.Operation = o.name
	c.look(o)
	return c.serviceOperation(o), nil
}
