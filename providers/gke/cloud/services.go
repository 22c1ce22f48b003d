package cloud

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/container/apiv1/containerpb"
	serviceusage "google.golang.org/api/serviceusage/v1"
)

// The services that a project has to have enabled.
const (
	ContainerService = "container.googleapis.com"
	ComputeService   = "compute.googleapis.com"
	FileService      = "file.googleapis.com"
	UsageService     = "serviceusage.googleapis.com" // which is always enabled
)

var services = []string{ContainerService, ComputeService, FileService}

// Services knows which services projects have enabled. It asks once for each
// project, also where it is asked by many at once. It enables, and never disables.
type Services struct {
	cloud *Cloud

	mu       sync.Mutex
	projects map[string]*projectServices
}

type projectServices struct {
	mu      sync.Mutex
	asked   bool
	enabled map[string]bool
	err     error
}

// NewServices is nil where there is nobody to ask.
func NewServices(c *Cloud) *Services {
	if c.Usage == nil {
		return nil
	}
	return &Services{cloud: c, projects: map[string]*projectServices{}}
}

func (s *Services) project(name string) *projectServices {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.projects[name] == nil {
		s.projects[name] = &projectServices{}
	}
	return s.projects[name]
}

// Missing are those of the services that the project has not enabled.
func (s *Services) Missing(ctx context.Context, project string, names []string) ([]string, error) {
	if s == nil {
		return nil, nil
	}
	p := s.project(project)
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.missing(ctx, project, p, names)
}

func (s *Services) missing(ctx context.Context, project string, p *projectServices, names []string) ([]string, error) {
	if !p.asked {
		p.enabled, p.err = s.ask(ctx, project)
		p.asked = ctx.Err() == nil
	}
	var all []string
	for _, name := range names {
		if p.err == nil && !p.enabled[name] {
			all = append(all, name)
		}
	}
	return all, p.err
}

func (s *Services) ask(ctx context.Context, project string) (map[string]bool, error) {
	var names []string
	for _, name := range services {
		names = append(names, "projects/"+project+"/services/"+name)
	}
	found, err := Read(ctx, s.cloud, func(ctx context.Context) (*serviceusage.BatchGetServicesResponse, error) {
		return s.cloud.Usage.Services.BatchGet("projects/" + project).Names(names...).Context(ctx).Do()
	})
	if err != nil {
		return nil, err
	}
	enabled := map[string]bool{}
	for _, one := range found.Services {
		enabled[one.Name[strings.LastIndexByte(one.Name, '/')+1:]] = one.State == "ENABLED"
	}
	return enabled, nil
}

// Enable enables those of the services that are not, and waits until they answer.
// Where it cannot be known which are, it does nothing: the calls that need them say.
func (s *Services) Enable(ctx context.Context, project string, names []string) error {
	if s == nil {
		return nil
	}
	p := s.project(project)
	p.mu.Lock()
	defer p.mu.Unlock()
	missing, err := s.missing(ctx, project, p, names)
	if err != nil || len(missing) == 0 {
		return nil
	}
	c, what := s.cloud.ForProject(project), "enabling "+strings.Join(missing, ", ")
	op, err := Repeat(ctx, c, func(ctx context.Context) (*serviceusage.Operation, error) {
		return c.Usage.Services.BatchEnable("projects/"+project, &serviceusage.BatchEnableServicesRequest{ServiceIds: missing}).Context(ctx).Do()
	})
	if err != nil {
		return fmt.Errorf("enable %s: %w", strings.Join(missing, ", "), err)
	}
	if err := c.waitUsage(ctx, op, what); err != nil {
		return fmt.Errorf("enable %s: %w", strings.Join(missing, ", "), err)
	}
	for _, name := range missing {
		if err := c.answers(ctx, name); err != nil {
			return err
		}
		p.enabled[name] = true
	}
	return nil
}

func (c *Cloud) waitUsage(ctx context.Context, op *serviceusage.Operation, what string) error {
	return c.WaitUntil(ctx, op.Name, func(ctx context.Context) (bool, error) {
		now := op
		if !op.Done { // an operation without work is done at once, and has no name to read
			var err error
			if now, err = Read(ctx, c, func(ctx context.Context) (*serviceusage.Operation, error) {
				return c.Usage.Operations.Get(op.Name).Context(ctx).Do()
			}); err != nil {
				return false, UnknownResult(op.Name, err)
			}
		}
		ReportProgress(ctx, -1, "%s", what)
		if now.Error != nil {
			return true, operationError("", now.Error.Message, op.Name)
		}
		return now.Done, nil
	})
}

// answers waits until a service that was enabled takes calls, which takes a minute
// or two after the operation has ended.
func (c *Cloud) answers(ctx context.Context, service string) error {
	return c.WaitUntil(ctx, service, func(ctx context.Context) (bool, error) {
		var err error
		switch service {
		case ContainerService:
			_, err = c.Clusters.ListClusters(ctx, &containerpb.ListClustersRequest{Parent: "projects/" + c.Project + "/locations/-"})
		case ComputeService:
			_, err = c.Compute.Projects.Get(c.Project).Context(ctx).Do()
		case FileService:
			_, err = c.File.Projects.Locations.Instances.List("projects/" + c.Project + "/locations/-").Context(ctx).Do()
		}
		if KindOf(Explain(err)) == Disabled {
			ReportProgress(ctx, -1, "waiting for %s, which is enabled and does not answer yet", service)
			return false, nil
		}
		return true, nil // what else it says concerns the calls that are made for something
	})
}

// DisabledError says that services have to be enabled.
func DisabledError(project string, names []string) *Error {
	names = slices.Clone(names)
	slices.Sort(names)
	var links []string
	for _, name := range names {
		links = append(links, fmt.Sprintf("https://console.cloud.google.com/apis/library/%s?project=%s", name, project))
	}
	return &Error{Summary: "API is not enabled", Kind: Disabled, Detail: fmt.Sprintf(
		"The project %s has not enabled %s. Enable it with `gcloud services enable %s --project %s`, or at %s; or set enable_services = true in the block provider \"gke\", which has an apply do it.",
		project, strings.Join(names, ", "), strings.Join(names, " "), project, strings.Join(links, " and "))}
}
