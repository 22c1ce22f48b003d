package providers

import (
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

func schemaFromProtocol(resp *tfprotov6.GetProviderSchemaResponse, o ServerOptions) (*Schema, error) {
	schema := &Schema{
		Provider:  &Block{},
		Resources: make(map[string]*ResourceSchema, len(resp.ResourceSchemas)),
		Data:      make(map[string]*ResourceSchema, len(resp.DataSourceSchemas)),
		Marks:     o.Marks,
	}
	if resp.ServerCapabilities != nil {
		schema.PlanDestroy = resp.ServerCapabilities.PlanDestroy
	}
	if resp.Provider != nil {
		block, err := blockFromProtocol(resp.Provider.Block)
		if err != nil {
			return nil, fmt.Errorf("provider schema: %w", err)
		}
		schema.Provider = block
	}
	if resp.ProviderMeta != nil && resp.ProviderMeta.Block != nil {
		block, err := blockFromProtocol(resp.ProviderMeta.Block)
		if err != nil {
			return nil, fmt.Errorf("provider_meta schema: %w", err)
		}
		schema.Meta = block
	}
	if err := resourcesFromProtocol(schema.Resources, resp.ResourceSchemas, o); err != nil {
		return nil, fmt.Errorf("resource %w", err)
	}
	if err := resourcesFromProtocol(schema.Data, resp.DataSourceSchemas, ServerOptions{}); err != nil {
		return nil, fmt.Errorf("data source %w", err)
	}
	return schema, nil
}

func resourcesFromProtocol(out map[string]*ResourceSchema, in map[string]*tfprotov6.Schema, o ServerOptions) error {
	for name, s := range in {
		if s == nil {
			return fmt.Errorf("%s: no schema", name)
		}
		block, err := blockFromProtocol(s.Block)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out[name] = &ResourceSchema{Version: s.Version, Block: block, NoEffect: slices.Contains(o.NoEffect, name), Echoes: o.Echoes[name]}
	}
	return nil
}

func blockFromProtocol(in *tfprotov6.SchemaBlock) (*Block, error) {
	if in == nil {
		return &Block{}, nil
	}
	attrs, err := attributesFromProtocol(in.Attributes)
	if err != nil {
		return nil, err
	}
	block := &Block{
		Attributes:         attrs,
		Blocks:             make(map[string]*NestedBlock, len(in.BlockTypes)),
		Description:        in.Description,
		Deprecated:         in.Deprecated || in.DeprecationMessage != "",
		DeprecationMessage: in.DeprecationMessage,
	}
	for _, b := range in.BlockTypes {
		nesting, ok := blockNesting[b.Nesting]
		if !ok {
			return nil, fmt.Errorf("block %s: unknown nesting mode %s", b.TypeName, b.Nesting)
		}
		inner, err := blockFromProtocol(b.Block)
		if err != nil {
			return nil, fmt.Errorf("block %s: %w", b.TypeName, err)
		}
		block.Blocks[b.TypeName] = &NestedBlock{Nesting: nesting, Block: inner, Min: int(b.MinItems), Max: int(b.MaxItems)}
	}
	return block, nil
}

var blockNesting = map[tfprotov6.SchemaNestedBlockNestingMode]Nesting{
	tfprotov6.SchemaNestedBlockNestingModeSingle: Single,
	tfprotov6.SchemaNestedBlockNestingModeGroup:  Group,
	tfprotov6.SchemaNestedBlockNestingModeList:   List,
	tfprotov6.SchemaNestedBlockNestingModeSet:    Set,
	tfprotov6.SchemaNestedBlockNestingModeMap:    Map,
}

var objectNesting = map[tfprotov6.SchemaObjectNestingMode]Nesting{
	tfprotov6.SchemaObjectNestingModeSingle: Single,
	tfprotov6.SchemaObjectNestingModeList:   List,
	tfprotov6.SchemaObjectNestingModeSet:    Set,
	tfprotov6.SchemaObjectNestingModeMap:    Map,
}

func attributesFromProtocol(in []*tfprotov6.SchemaAttribute) (map[string]*Attribute, error) {
	out := make(map[string]*Attribute, len(in))
	for _, a := range in {
		attr := &Attribute{
			Required: a.Required, Optional: a.Optional, Computed: a.Computed,
			Sensitive: a.Sensitive, WriteOnly: a.WriteOnly,
			Description:        a.Description,
			Deprecated:         a.Deprecated || a.DeprecationMessage != "",
			DeprecationMessage: a.DeprecationMessage,
		}
		var err error
		if a.NestedType != nil {
			attr.Nested, err = nestedFromProtocol(a.NestedType)
		} else {
			attr.Type, err = typeFromProtocol(a.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", a.Name, err)
		}
		out[a.Name] = attr
	}
	return out, nil
}

func nestedFromProtocol(in *tfprotov6.SchemaObject) (*NestedType, error) {
	nesting, ok := objectNesting[in.Nesting]
	if !ok {
		return nil, fmt.Errorf("unknown nesting mode %s", in.Nesting)
	}
	attrs, err := attributesFromProtocol(in.Attributes)
	if err != nil {
		return nil, err
	}
	return &NestedType{Nesting: nesting, Attributes: attrs}, nil
}

func typeFromProtocol(in tftypes.Type) (cty.Type, error) {
	switch t := in.(type) {
	case nil:
		return cty.NilType, fmt.Errorf("no type")
	case tftypes.List:
		return collectionFromProtocol(cty.List, t.ElementType)
	case tftypes.Set:
		return collectionFromProtocol(cty.Set, t.ElementType)
	case tftypes.Map:
		return collectionFromProtocol(cty.Map, t.ElementType)
	case tftypes.Tuple:
		types := make([]cty.Type, len(t.ElementTypes))
		for i, el := range t.ElementTypes {
			ty, err := typeFromProtocol(el)
			if err != nil {
				return cty.NilType, err
			}
			types[i] = ty
		}
		return cty.Tuple(types), nil
	case tftypes.Object:
		types := make(map[string]cty.Type, len(t.AttributeTypes))
		for name, el := range t.AttributeTypes {
			ty, err := typeFromProtocol(el)
			if err != nil {
				return cty.NilType, err
			}
			types[name] = ty
		}
		return cty.Object(types), nil
	}
	switch {
	case in.Is(tftypes.String):
		return cty.String, nil
	case in.Is(tftypes.Number):
		return cty.Number, nil
	case in.Is(tftypes.Bool):
		return cty.Bool, nil
	case in.Is(tftypes.DynamicPseudoType):
		return cty.DynamicPseudoType, nil
	}
	return cty.NilType, fmt.Errorf("unknown type %s", in)
}

func collectionFromProtocol(of func(cty.Type) cty.Type, el tftypes.Type) (cty.Type, error) {
	ty, err := typeFromProtocol(el)
	if err != nil {
		return cty.NilType, err
	}
	return of(ty), nil
}
