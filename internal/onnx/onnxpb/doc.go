// Package onnxpb holds the messages of ONNX files that Sotto writes, as Go types. onnx.proto is the schema;
// `go generate ./internal/onnx/onnxpb` makes the Go code from it. The generator is the module in gen.
package onnxpb

//go:generate go -C gen run .
