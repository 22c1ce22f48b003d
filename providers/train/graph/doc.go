// Package graph is the argument model_graph of train_experiment: a model as data, from a
// configuration, or from the JSON file of model_file.
//
// It holds the schema. Package runtime/model reads and checks models.
//
// Entry points: Attribute, Read, Value.
package graph
