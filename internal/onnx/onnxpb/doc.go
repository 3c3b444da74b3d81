// Package onnxpb is the schema of ONNX models as Go types.
//
// onnx.proto is that of the Python package onnx 1.23.2 (https://github.com/onnx/onnx, Apache-2.0), byte by byte. Its Go
// code is made from it by protoc and the generator of the module that go.mod names:
//
//	go build -o /tmp/protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go
//	protoc -I internal/onnx/onnxpb --plugin=/tmp/protoc-gen-go --go_out=internal/onnx/onnxpb \
//	  --go_opt=paths=source_relative,Monnx.proto=github.com/sottodp/sotto/internal/onnx/onnxpb onnx.proto
//
// where protoc may be `python -m grpc_tools.protoc` of the Python package grpcio-tools.
package onnxpb
