// Package train is the provider "train": train_dataset prepares records,
// train_experiment trains a model on them and knows how the run stands.
//
// It is not the runtime and never imports it beyond runtime/spec: data is
// read, devices are asked for and models are trained by running stoke-trainer.
// It works under any engine that speaks Terraform's protocol; what stoke's own
// engine adds rides in the context (providers.Call).
//
// Entry points: New, the framework's provider; Entry, for stoke's catalogue.
package train
