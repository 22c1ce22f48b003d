package gcptest

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// binding is one way in which the protos let a gRPC method be called over HTTP.
type binding struct {
	method  string
	verb    string
	pattern *regexp.Regexp
	fields  []string // of the request, one for each group
	body    string   // "*" for the whole request, "" for none
}

// bindings returns those of container v1, as its protos are annotated.
var bindings = sync.OnceValue(func() []binding {
	var all []binding
	methods := containerpb.File_google_container_v1_cluster_service_proto.Services().ByName("ClusterManager").Methods()
	for i := range methods.Len() {
		rule, ok := proto.GetExtension(methods.Get(i).Options(), annotations.E_Http).(*annotations.HttpRule)
		if !ok || rule == nil {
			continue
		}
		for _, one := range append([]*annotations.HttpRule{rule}, rule.GetAdditionalBindings()...) {
			all = append(all, bind(string(methods.Get(i).Name()), one))
		}
	}
	return all
})

// variable is a field in a path template: {name=projects/*/locations/*} or {name}.
var variable = regexp.MustCompile(`\{(\w+)(?:=([^}]*))?\}`)

func bind(method string, rule *annotations.HttpRule) binding {
	b := binding{method: method, body: rule.GetBody()}
	var template string
	switch at := rule.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		b.verb, template = http.MethodGet, at.Get
	case *annotations.HttpRule_Post:
		b.verb, template = http.MethodPost, at.Post
	case *annotations.HttpRule_Put:
		b.verb, template = http.MethodPut, at.Put
	case *annotations.HttpRule_Delete:
		b.verb, template = http.MethodDelete, at.Delete
	case *annotations.HttpRule_Patch:
		b.verb, template = http.MethodPatch, at.Patch
	}
	text, end := "", 0
	for _, at := range variable.FindAllStringSubmatchIndex(template, -1) {
		text += regexp.QuoteMeta(template[end:at[0]])
		b.fields = append(b.fields, template[at[2]:at[3]])
		inner := "[^/]+"
		if at[4] >= 0 {
			inner = strings.ReplaceAll(regexp.QuoteMeta(template[at[4]:at[5]]), `\*`, "[^/:]+")
		}
		text, end = text+"("+inner+")", at[1]
	}
	b.pattern = regexp.MustCompile("^" + text + regexp.QuoteMeta(template[end:]) + "$")
	return b
}

// transcode answers a REST call of container v1 by the gRPC method behind it.
func (c *Cloud) transcode(ctx context.Context, r *request, path string) (any, error) {
	for _, b := range bindings() {
		groups := b.pattern.FindStringSubmatch(path)
		if b.verb != r.Verb || groups == nil {
			continue
		}
		for _, method := range containerpb.ClusterManager_ServiceDesc.Methods {
			if method.MethodName != b.method {
				continue
			}
			var unread error
			reply, err := method.Handler(c, context.WithValue(ctx, callKey{}, r.Call), func(into any) error {
				unread = b.read(r, into.(proto.Message), groups[1:])
				return unread
			}, c.overGRPC)
			if unread != nil { // nobody has seen the call yet
				return c.answer(ctx, r.Call, func() error { return unread }, nil)
			}
			return reply, err
		}
	}
	return c.answer(ctx, r.Call, func() error {
		return status.Errorf(codes.Unimplemented, "the protos have no %s %s", r.Verb, path)
	}, nil)
}

// read puts body, query and path of a call into the request of its method.
func (b binding) read(r *request, into proto.Message, groups []string) error {
	message := into.ProtoReflect()
	if b.body == "*" && len(r.Body) > 0 {
		if err := protojson.Unmarshal(r.Body, into); err != nil {
			return invalid("Invalid JSON payload received. %v", err)
		}
	}
	for name, values := range r.Query {
		if f := message.Descriptor().Fields().ByJSONName(name); f != nil && b.body == "" {
			if f.Kind() != protoreflect.StringKind || f.IsList() {
				return status.Errorf(codes.Unimplemented, "the double does not read the query parameter %s", name)
			}
			message.Set(f, protoreflect.ValueOfString(values[0]))
		}
	}
	for i, name := range b.fields {
		f := message.Descriptor().Fields().ByName(protoreflect.Name(name))
		if had := message.Get(f).String(); had != "" && had != groups[i] {
			return invalid("Field %q of the body, %q, differs from the field of the path, %q.", name, had, groups[i])
		}
		message.Set(f, protoreflect.ValueOfString(groups[i]))
	}
	return nil
}
