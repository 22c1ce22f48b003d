package providers

import "github.com/zclconf/go-cty/cty"

// Schema is everything that a provider offers.
type Schema struct {
	Provider  *Block
	Meta      *Block // provider_meta; nil where there is none
	Resources map[string]*ResourceSchema
	Data      map[string]*ResourceSchema

	// PlanDestroy says that Plan wants to be called for destroys too.
	PlanDestroy bool
	// Marks says that the provider stamps the operation id on what it makes
	// and finds it again by it: creates of unknown outcome can be settled.
	Marks bool
}

// ResourceSchema describes one resource or data source.
type ResourceSchema struct {
	Version int64
	Block   *Block
	// NoEffect: objects exist only in the state, so that a crash leaves nothing to
	// find.
	NoEffect bool
	// Echoes are computed attributes that repeat what arguments say, by name with
	// the names of these: such an attribute is sensitive where one of them is.
	Echoes map[string][]string
}

// Block is a set of attributes and nested blocks.
type Block struct {
	Attributes  map[string]*Attribute
	Blocks      map[string]*NestedBlock
	Description string
	Deprecated  bool
	// DeprecationMessage says what to use instead; providers often leave it out.
	DeprecationMessage string
}

// Attribute is one argument or computed value.
type Attribute struct {
	Type        cty.Type    // not set when Nested is
	Nested      *NestedType // attributes within an attribute
	Required    bool
	Optional    bool
	Computed    bool
	Sensitive   bool
	WriteOnly   bool
	Deprecated  bool
	Description string
	// DeprecationMessage says what to use instead; providers often leave it out.
	DeprecationMessage string
}

// NestedType is the type of an attribute that has attributes itself.
type NestedType struct {
	Nesting    Nesting
	Attributes map[string]*Attribute
}

// NestedBlock is a block within a block.
type NestedBlock struct {
	Nesting  Nesting
	Block    *Block
	Min, Max int // 0 for Max: no limit
}

// Nesting says how often something nested may occur, and as what.
type Nesting uint8

const (
	Single Nesting = iota + 1
	Group          // like Single, but never null
	List
	Set
	Map
)

// ImpliedType is the type of the attribute's value.
func (a *Attribute) ImpliedType() cty.Type {
	if a.Nested == nil {
		return a.Type
	}
	attrs := make(map[string]cty.Type, len(a.Nested.Attributes))
	for name, n := range a.Nested.Attributes {
		attrs[name] = n.ImpliedType()
	}
	return collection(a.Nested.Nesting, cty.Object(attrs))
}

// ImpliedType is the type of the block's value: an object of its attributes
// and blocks. Callers on a hot path keep it.
func (b *Block) ImpliedType() cty.Type {
	attrs := make(map[string]cty.Type, len(b.Attributes)+len(b.Blocks))
	for name, a := range b.Attributes {
		attrs[name] = a.ImpliedType()
	}
	for name, n := range b.Blocks {
		ty := n.Block.ImpliedType()
		// Elements with a dynamic part may differ in type, which lists and
		// maps cannot express.
		if (n.Nesting == List || n.Nesting == Map) && ty.HasDynamicTypes() {
			attrs[name] = cty.DynamicPseudoType
			continue
		}
		attrs[name] = collection(n.Nesting, ty)
	}
	return cty.Object(attrs)
}

func collection(n Nesting, ty cty.Type) cty.Type {
	switch n {
	case List:
		return cty.List(ty)
	case Set:
		return cty.Set(ty)
	case Map:
		return cty.Map(ty)
	}
	return ty
}
