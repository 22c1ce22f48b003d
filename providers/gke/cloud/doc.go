// Package cloud speaks to Google Cloud for the provider gke: clients of the
// services container, compute and file; the credentials they use; the rules of
// retries; operations, waited for and found again; errors with their reason,
// request id and remedy; the marks that identify the objects of an interrupted
// apply. It knows no resource. Open is the entry point.
package cloud
