// Package catalogue has the machines of Google Cloud as tables: processors, memory, GPUs, local SSDs, zones and quotas, as of AsOf.
// The provider uses them where the Compute Engine API gives no answer, and the double of Google Cloud offers
// these machines. Find is its entry point. It depends on neither a provider nor an API.
package catalogue
