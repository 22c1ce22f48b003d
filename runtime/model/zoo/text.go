package zoo

import (
	"fmt"

	"github.com/stokehq/stoke/runtime/model"
)

// The size of the transformer. GPT-2's smallest has a width of 768, 12 heads and 12 blocks.
const (
	transformerWidth  = 128
	transformerHeads  = 4
	transformerBlocks = 4
)

// transformer is a small language model of characters or bytes: a decoder without an
// encoder (Vaswani, Shazeer, Parmar et al. 2017), whose blocks normalise before attention
// and before the two dense layers, as in GPT-2 (Radford, Wu, Child et al. 2019). For each
// position of a sequence it gives the logits of the next character from this and earlier
// positions. Positions are learned, the last layer and the embedding do not share weights,
// and nothing is dropped.
//
// For 256 characters and sequences of 64 it has 867,328 parameters: in general 793,344 in
// blocks and last normalisation, 128 per position, 257 per character. Embedding and
// positions begin with GPT-2's standard deviation of 0.02, of a uniform distribution;
// weights of dense layers as Glorot and Bengio (2010) say, not smaller in later blocks.
func transformer(characters int) []model.Layer {
	var layers []model.Layer
	add := func(l model.Layer, inputs ...string) {
		l.Inputs = inputs
		layers = append(layers, l)
	}
	norm := func(name string, inputs ...string) {
		add(model.Layer{Name: name, Op: model.LayerNorm, Epsilon: normEpsilon}, inputs...)
	}
	add(model.Layer{Name: "embedding", Op: model.Embedding, Vocabulary: characters, Units: transformerWidth})
	add(model.Layer{Name: "position", Op: model.Position})
	from := "position"
	for i := range transformerBlocks {
		name := fmt.Sprintf("block%d.", i+1)
		norm(name+"norm1", from)
		for _, part := range []string{"query", "key", "value"} {
			add(dense(name+part, transformerWidth), name+"norm1")
		}
		attention := model.Layer{Name: name + "attention", Op: model.Attention, Heads: transformerHeads, Causal: true}
		add(attention, name+"query", name+"key", name+"value")
		add(dense(name+"projection", transformerWidth))
		add(model.Layer{Name: name + "sum1", Op: model.Add}, from, name+"projection")
		norm(name + "norm2")
		add(dense(name+"hidden", 4*transformerWidth))
		add(model.Layer{Name: name + "gelu", Op: model.GELU})
		add(dense(name+"output", transformerWidth))
		from = name + "sum2"
		add(model.Layer{Name: from, Op: model.Add}, name+"sum1", name+"output")
	}
	norm("norm")
	add(dense("output", characters))
	return layers
}
