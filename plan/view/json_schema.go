package view

import (
	"encoding/json"
	"fmt"

	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/stokehq/stoke/providers"
)

type jsonSchemas struct {
	FormatVersion string                        `json:"format_version"`
	Schemas       map[string]jsonProviderSchema `json:"provider_schemas,omitempty"`
}

type jsonProviderSchema struct {
	Provider  *jsonSchema              `json:"provider,omitempty"`
	Resources map[string]*jsonSchema   `json:"resource_schemas,omitempty"`
	Data      map[string]*jsonSchema   `json:"data_source_schemas,omitempty"`
	Functions map[string]*jsonFunction `json:"functions,omitempty"`
}

type jsonSchema struct {
	Version int64            `json:"version"`
	Block   *jsonSchemaBlock `json:"block,omitempty"`
}

type jsonSchemaBlock struct {
	Attributes      map[string]*jsonSchemaAttribute `json:"attributes,omitempty"`
	Blocks          map[string]*jsonSchemaNested    `json:"block_types,omitempty"`
	Description     string                          `json:"description,omitempty"`
	DescriptionKind string                          `json:"description_kind,omitempty"`
	Deprecated      bool                            `json:"deprecated,omitempty"`
}

type jsonSchemaNested struct {
	Nesting string           `json:"nesting_mode"`
	Block   *jsonSchemaBlock `json:"block,omitempty"`
	Min     int              `json:"min_items,omitempty"`
	Max     int              `json:"max_items,omitempty"`
}

type jsonSchemaAttribute struct {
	Type            json.RawMessage   `json:"type,omitempty"`
	Nested          *jsonSchemaObject `json:"nested_type,omitempty"`
	Description     string            `json:"description,omitempty"`
	DescriptionKind string            `json:"description_kind,omitempty"`
	Deprecated      bool              `json:"deprecated,omitempty"`
	Required        bool              `json:"required,omitempty"`
	Optional        bool              `json:"optional,omitempty"`
	Computed        bool              `json:"computed,omitempty"`
	Sensitive       bool              `json:"sensitive,omitempty"`
	WriteOnly       bool              `json:"write_only,omitempty"`
}

type jsonSchemaObject struct {
	Attributes map[string]*jsonSchemaAttribute `json:"attributes,omitempty"`
	Nesting    string                          `json:"nesting_mode,omitempty"`
}

// SchemasJSON is what providers offer, by source address, in Terraform's
// published format. Their functions are those of the catalogue.
func SchemasJSON(schemas map[string]*providers.Schema, c providers.Catalogue) ([]byte, error) {
	out := jsonSchemas{FormatVersion: "1.0", Schemas: make(map[string]jsonProviderSchema, len(schemas))}
	for source, s := range schemas {
		var p jsonProviderSchema
		var err error
		if p.Provider, err = schemaJSON(0, s.Provider); err != nil {
			return nil, fmt.Errorf("encode schema of %s: %w", source, err)
		}
		if p.Resources, err = resourceSchemas(s.Resources); err != nil {
			return nil, fmt.Errorf("encode schemas of %s: %w", source, err)
		}
		if p.Data, err = resourceSchemas(s.Data); err != nil {
			return nil, fmt.Errorf("encode schemas of %s: %w", source, err)
		}
		if p.Functions, err = functionsJSON(c[source].Functions); err != nil {
			return nil, fmt.Errorf("encode functions of %s: %w", source, err)
		}
		out.Schemas[source] = p
	}
	return json.Marshal(out)
}

func resourceSchemas(schemas map[string]*providers.ResourceSchema) (map[string]*jsonSchema, error) {
	out := make(map[string]*jsonSchema, len(schemas))
	for name, s := range schemas {
		var err error
		if out[name], err = schemaJSON(s.Version, s.Block); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

func schemaJSON(version int64, b *providers.Block) (*jsonSchema, error) {
	if b == nil || len(b.Attributes) == 0 && len(b.Blocks) == 0 && version == 0 {
		return &jsonSchema{}, nil
	}
	block, err := blockJSON(b)
	return &jsonSchema{Version: version, Block: block}, err
}

// plainText is the kind of all descriptions: nobody marks them up.
const plainText = "plain"

func blockJSON(b *providers.Block) (*jsonSchemaBlock, error) {
	out := &jsonSchemaBlock{Description: b.Description, DescriptionKind: plainText, Deprecated: b.Deprecated}
	var err error
	if out.Attributes, err = attributesJSON(b.Attributes); err != nil {
		return nil, err
	}
	if len(b.Blocks) > 0 {
		out.Blocks = make(map[string]*jsonSchemaNested, len(b.Blocks))
	}
	for name, n := range b.Blocks {
		inner, err := blockJSON(n.Block)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out.Blocks[name] = &jsonSchemaNested{Nesting: nestingWord(n.Nesting), Block: inner, Min: n.Min, Max: n.Max}
	}
	return out, nil
}

func attributesJSON(attributes map[string]*providers.Attribute) (map[string]*jsonSchemaAttribute, error) {
	if len(attributes) == 0 {
		return nil, nil
	}
	out := make(map[string]*jsonSchemaAttribute, len(attributes))
	for name, a := range attributes {
		j := &jsonSchemaAttribute{
			Description: a.Description, DescriptionKind: plainText, Deprecated: a.Deprecated, Required: a.Required,
			Optional: a.Optional, Computed: a.Computed, Sensitive: a.Sensitive, WriteOnly: a.WriteOnly,
		}
		var err error
		if a.Nested != nil {
			j.Nested = &jsonSchemaObject{Nesting: nestingWord(a.Nested.Nesting)}
			j.Nested.Attributes, err = attributesJSON(a.Nested.Attributes)
		} else {
			j.Type, err = ctyjson.MarshalType(a.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = j
	}
	return out, nil
}

func nestingWord(n providers.Nesting) string {
	switch n {
	case providers.Group:
		return "group"
	case providers.List:
		return "list"
	case providers.Set:
		return "set"
	case providers.Map:
		return "map"
	}
	return "single"
}
