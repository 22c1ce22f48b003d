package gcptest

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

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
