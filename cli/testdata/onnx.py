"""Runs models in onnxruntime. Standard input: a JSON list of {"model": path, "inputs": {name:
{"type", "shape", "data"}}} with all data as text; output: a list of {output: rows of text}, and
the metadata under ""."""
import json
import sys

import numpy
import onnxruntime

answers = []
for case in json.load(sys.stdin):
    session = onnxruntime.InferenceSession(case["model"], providers=["CPUExecutionProvider"])
    inputs = {}
    for name, tensor in case["inputs"].items():
        kind = {"string": object, "double": numpy.float64, "uint8": numpy.uint8}[tensor["type"]]
        inputs[name] = numpy.array(tensor["data"] or [], dtype=kind).reshape(tensor["shape"])
    names = [output.name for output in session.get_outputs()]
    answer = {}
    for name, rows in zip(names, session.run(names, inputs)):
        answer[name] = [[repr(float(v)) if rows.dtype == numpy.float64 else v for v in row] for row in rows]
    answer[""] = [[key, value] for key, value in session.get_modelmeta().custom_metadata_map.items()]
    answers.append(answer)
json.dump(answers, sys.stdout)
