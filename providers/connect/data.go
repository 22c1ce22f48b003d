package connect

import (
	"fmt"

	data "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// ForDataSource is an attribute of resources, such as Argument, MachineArgument or
// Result, as one of data sources. The framework has a type for each of
// the two.
func ForDataSource(a schema.SingleNestedAttribute) data.SingleNestedAttribute {
	return data.SingleNestedAttribute{
		Required: a.Required, Optional: a.Optional, Computed: a.Computed, Description: a.Description, Validators: a.Validators,
		Attributes: forDataSource(a.Attributes),
	}
}

func forDataSource(attributes map[string]schema.Attribute) map[string]data.Attribute {
	out := make(map[string]data.Attribute, len(attributes))
	for name, a := range attributes {
		switch a := a.(type) {
		case schema.StringAttribute:
			out[name] = data.StringAttribute{Required: a.Required, Optional: a.Optional, Computed: a.Computed, Description: a.Description, Validators: a.Validators}
		case schema.Int64Attribute:
			out[name] = data.Int64Attribute{Required: a.Required, Optional: a.Optional, Computed: a.Computed, Description: a.Description, Validators: a.Validators}
		case schema.ListAttribute:
			out[name] = data.ListAttribute{Required: a.Required, Optional: a.Optional, Computed: a.Computed, Description: a.Description, ElementType: a.ElementType}
		case schema.SingleNestedAttribute:
			out[name] = ForDataSource(a)
		case schema.ListNestedAttribute:
			out[name] = data.ListNestedAttribute{
				Required: a.Required, Optional: a.Optional, Computed: a.Computed, Description: a.Description,
				NestedObject: data.NestedAttributeObject{Attributes: forDataSource(a.NestedObject.Attributes)},
			}
		default: // an attribute of this package of a type that is new here
			panic(fmt.Sprintf("%s: %T cannot be an argument of a data source", name, a))
		}
	}
	return out
}
