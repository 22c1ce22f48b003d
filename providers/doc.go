// Package providers is the line between the engine and whatever makes things
// real: the interface that the engine drives (Provider), the schemas that
// describe resources, the value that a call's context carries beyond what
// Terraform's protocol gives (Call), and the catalogue of providers that are
// linked into the binary (Catalogue).
//
// Values cross the line as decoded cty; protocols and encodings are the
// adapters' affair (FromServer turns any tfprotov6.ProviderServer into a
// Provider). It knows neither plans nor configurations.
package providers
