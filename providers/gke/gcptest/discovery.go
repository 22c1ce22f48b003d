package gcptest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stokehq/stoke/runtime/pattern"
)

// document is a discovery document: what Google publishes about a REST API.
type document struct {
	ServicePath string               `json:"servicePath"`
	Parameters  map[string]parameter `json:"parameters"`
	Schemas     map[string]*schema   `json:"schemas"`
	resources

	routes []*route
}

type resources struct {
	Methods   map[string]*route     `json:"methods"`
	Resources map[string]*resources `json:"resources"`
}

// route is a method of an API.
type route struct {
	ID         string               `json:"id"` // "compute.disks.insert"
	Verb       string               `json:"httpMethod"`
	Path       string               `json:"path"` // a template
	Parameters map[string]parameter `json:"parameters"`
	Request    *schema              `json:"request"`

	pattern *regexp.Regexp
	names   []string // of the pattern's groups
}

type parameter struct {
	Location string `json:"location"` // "path" or "query"
	Required bool   `json:"required"`
	Pattern  string `json:"pattern"`
}

// schema is what a value must look like.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       string             `json:"type"`
	Format     string             `json:"format"`
	Enum       []string           `json:"enum"`
	ReadOnly   bool               `json:"readOnly"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	Additional *schema            `json:"additionalProperties"`
}

// documents are those of the services that the double speaks, by the first part
// of their URLs. They come with the module of Google's REST clients.
var documents = sync.OnceValues(func() (map[string]*document, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "google.golang.org/api")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("find Google's discovery documents: go list -m google.golang.org/api: %w", err)
	}
	all := make(map[string]*document)
	for _, name := range []string{"container", "compute", "file", "serviceusage"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), name, "v1", name+"-api.json"))
		if err != nil {
			return nil, fmt.Errorf("read Google's discovery document of %s: %w", name, err)
		}
		d := &document{}
		if err := json.Unmarshal(text, d); err != nil {
			return nil, fmt.Errorf("read Google's discovery document of %s: %w", name, err)
		}
		d.collect(&d.resources)
		slices.SortFunc(d.routes, func(a, b *route) int { return strings.Compare(a.ID, b.ID) })
		all[name] = d
	}
	return all, nil
})

// templated are the variables of a path template: {name}, and {+name} with
// slashes inside.
var templated = pattern.New(`\\\{(\\\+)?(\w+)\\\}`)

func (d *document) collect(r *resources) {
	for _, one := range r.Methods {
		text := templated.ReplaceAllStringFunc(regexp.QuoteMeta(one.Path), func(variable string) string {
			name := strings.Trim(variable, `\{+}`)
			one.names = append(one.names, name)
			if given := one.Parameters[name].Pattern; given != "" && strings.HasPrefix(given, "^") {
				return "(" + strings.Trim(given, "^$") + ")"
			}
			return "([^/]+)"
		})
		one.pattern = regexp.MustCompile("^/" + text + "$")
		d.routes = append(d.routes, one)
	}
	for _, sub := range r.Resources {
		d.collect(sub)
	}
}

// find is the method of a verb and path, with what the path says.
func (d *document) find(verb, path string) (*route, map[string]string, error) {
	var verbs []string
	for _, one := range d.routes {
		groups := one.pattern.FindStringSubmatch(path)
		if groups == nil {
			continue
		}
		if one.Verb != verb {
			verbs = append(verbs, one.Verb)
			continue
		}
		params := make(map[string]string)
		for i, name := range one.names {
			params[name] = groups[i+1]
		}
		return one, params, nil
	}
	slices.Sort(verbs)
	if len(verbs) > 0 {
		return nil, nil, status.Errorf(codes.Unimplemented, "the discovery document has %s for the path %s, not %s", strings.Join(verbs, ", "), path, verb)
	}
	return nil, nil, status.Errorf(codes.Unimplemented, "the discovery document has no path %s", path)
}

// checkQuery refuses parameters that a method does not have. Every parameter of
// all methods may also be written with a $.
func (d *document) checkQuery(r *route, query url.Values) error {
	for name := range query {
		_, general := d.Parameters[strings.TrimPrefix(name, "$")]
		if r.Parameters[name].Location != "query" && !general && d.Parameters[name] == (parameter{}) {
			return badRequest("Invalid JSON payload received. Unknown name \"%s\": Cannot bind query parameter. Field '%s' could not be found in request message.", name, name)
		}
	}
	for name, p := range r.Parameters {
		if p.Required && p.Location == "query" && !query.Has(name) {
			return badRequest("Required parameter: %s", name)
		}
	}
	return nil
}

// checkBody refuses what a method's body may not have: fields that are not
// published, of another type, or that only the server sets.
func (d *document) checkBody(r *route, body []byte) error {
	if r.Request == nil {
		if len(body) > 0 {
			return badRequest("Invalid JSON payload received: %s takes no body.", r.ID)
		}
		return nil
	}
	if len(body) == 0 {
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return badRequest("Invalid JSON payload received. %v", err)
	}
	return d.check(r.Request, value, "")
}

func (d *document) check(s *schema, value any, where string) error {
	for s != nil && s.Ref != "" {
		s = d.Schemas[s.Ref]
	}
	if s == nil || value == nil {
		return nil
	}
	wrong := func(want string) error {
		return badRequest("Invalid value at '%s': %v is not a %s.", strings.TrimPrefix(where, "."), value, want)
	}
	switch s.Type {
	case "object":
		object, ok := value.(map[string]any)
		if !ok {
			return wrong("object")
		}
		return d.checkObject(s, object, where)
	case "array":
		list, ok := value.([]any)
		if !ok {
			return wrong("array")
		}
		for i, one := range list {
			if err := d.check(s.Items, one, fmt.Sprintf("%s[%d]", where, i)); err != nil {
				return err
			}
		}
	case "boolean":
		if _, ok := value.(bool); !ok {
			return wrong("boolean")
		}
	case "string":
		text, ok := value.(string)
		_, isNumber := value.(float64)
		switch {
		case !ok && !(isNumber && (len(s.Enum) > 0 || s.Format != "")):
			return wrong("string")
		case ok && len(s.Enum) > 0 && !slices.Contains(s.Enum, text):
			return wrong("value of " + strings.Join(s.Enum, ", "))
		}
	case "integer", "number":
		if _, ok := value.(float64); !ok {
			return wrong(s.Type)
		}
	}
	return nil
}

func (d *document) checkObject(s *schema, object map[string]any, where string) error {
	for name, value := range object {
		property := s.Properties[name]
		switch {
		case property == nil && s.Additional == nil:
			return badRequest("Invalid JSON payload received. Unknown name \"%s\" at '%s': Cannot find field.", name, strings.TrimPrefix(where, "."))
		case property == nil:
			property = s.Additional
		case property.ReadOnly:
			return badRequest("The field '%s' is output only: only the server sets it.", strings.TrimPrefix(where+"."+name, "."))
		}
		if err := d.check(property, value, where+"."+name); err != nil {
			return err
		}
	}
	return nil
}

// checkOutputOnly refuses fields of a gRPC request, as JSON, that only the
// server sets. Fields that the discovery document does not know yet are left to
// the protos.
func checkOutputOnly(message string, body []byte) error {
	all, err := documents()
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	d := all["container"]
	s := d.Schemas[message]
	if s == nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return badRequest("%v", err)
	}
	return d.outputOnly(s, value, "")
}

func (d *document) outputOnly(s *schema, value any, where string) error {
	for s != nil && s.Ref != "" {
		s = d.Schemas[s.Ref]
	}
	if s == nil {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		for name, one := range value {
			property := s.Properties[name]
			if property != nil && property.ReadOnly {
				return badRequest("The field '%s' is output only: only the server sets it.", strings.TrimPrefix(where+"."+name, "."))
			}
			if err := d.outputOnly(property, one, where+"."+name); err != nil {
				return err
			}
		}
	case []any:
		for i, one := range value {
			if err := d.outputOnly(s.Items, one, fmt.Sprintf("%s[%d]", where, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// older are the fields by which requests named things before there were names.
var older = []protoreflect.Name{"project_id", "zone", "cluster_id", "node_pool_id", "operation_id"}

// checkMessage refuses a request with fields that its proto does not have, and
// with those that Google has given up.
func checkMessage(m proto.Message) error {
	for _, name := range older {
		if f := m.ProtoReflect().Descriptor().Fields().ByName(name); f != nil && m.ProtoReflect().Has(f) {
			return invalid("Field %q is deprecated: use name or parent.", name)
		}
	}
	return unknown(m.ProtoReflect(), "")
}

// unknown refuses fields that are not in the published protos.
func unknown(m protoreflect.Message, path string) error {
	if len(m.GetUnknown()) > 0 {
		return invalid("Unknown field in %s%s.", m.Descriptor().Name(), path)
	}
	var failed error
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		where := path + "." + string(f.Name())
		switch {
		case f.IsMap() && f.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, one protoreflect.Value) bool {
				failed = unknown(one.Message(), where)
				return failed == nil
			})
		case f.IsMap() || f.Message() == nil:
		case f.IsList():
			for i := 0; i < v.List().Len() && failed == nil; i++ {
				failed = unknown(v.List().Get(i).Message(), where)
			}
		default:
			failed = unknown(v.Message(), where)
		}
		return failed == nil
	})
	return failed
}
