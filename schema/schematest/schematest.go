// Package schematest holds schemas for tests.
package schematest

// Small is a schema for CSV.
const Small = `dataset: clinic
rows: 100
format: {missing: ["", "?"]}
columns:
  - {name: age, type: numeric, min: 0, max: 100, missing: zero}
  - name: colour
    type: categorical
    levels: [red, green, 1.0]
    unknown: zero
    missing: green
  - {name: id, type: ignore}
  - {name: gain, type: numeric, min: 0, max: 1000, transform: log1p, missing: 10}
  - {name: sick, type: label, classes: ["no", "yes"], strip: "."}
`

// UnitSmall is Small with a unit.
const UnitSmall = `dataset: clinic
units: 100
unit: {name: patient, rows: 8}
format: {missing: ["", "?"]}
columns:
  - {name: age, type: numeric, min: 0, max: 100, missing: zero}
  - name: colour
    type: categorical
    levels: [red, green, 1.0]
    unknown: zero
    missing: green
  - {name: id, type: unit}
  - {name: gain, type: numeric, min: 0, max: 1000, transform: log1p, missing: 10}
  - {name: sick, type: label, classes: ["no", "yes"], strip: "."}
`

// SVM is a schema for LIBSVM.
const SVM = `dataset: d
format: {kind: libsvm, comment: "#"}
features: 5
min: -2
max: 2
row_norm: 4
columns: [{name: y, type: label, classes: ["-1", "+1"]}]
`

// Pictures is a schema for IDX.
const Pictures = `
dataset: pictures
rows: 3
format: {kind: idx}
image: {shape: [2, 3], center: 100, scale: 50}
row_norm: 16
row_scaling: project
columns: [{name: digit, type: label, classes: ["7", "3"]}]
`

// Visits is a schema with a unit; the column who says a second time, as a feature, whose
// row it is, so that a test can see it in the encoded rows.
const Visits = `dataset: visits
unit: {name: patient, rows: 3}
units: 6
row_scaling: project
row_norm: 4
on_bad_row: drop
columns:
  - {name: patient_id, type: unit}
  - {name: who, type: numeric, min: 0, max: 8}
  - {name: age, type: numeric, min: 0, max: 100}
  - {name: sick, type: label, classes: ["no", "yes"]}
`

// Bank is the schema of a table of the UCI repository.
const Bank = `
dataset: bank
rows: 45211
format: {delimiter: ";"}
columns:
  - {name: age, type: numeric, min: 18, max: 100}
  - {name: job, type: categorical, levels: [admin., unknown, unemployed, management, housemaid, entrepreneur, student, blue-collar, self-employed, retired, technician, services]}
  - {name: marital, type: categorical, levels: [married, divorced, single]}
  - {name: education, type: categorical, levels: [unknown, secondary, primary, tertiary]}
  - {name: default, type: categorical, levels: [yes, no]}
  - {name: balance, type: numeric, min: -10000, max: 100000, transform: signed_log1p}
  - {name: housing, type: categorical, levels: [yes, no]}
  - {name: loan, type: categorical, levels: [yes, no]}
  - {name: contact, type: categorical, levels: [unknown, telephone, cellular]}
  - {name: day, type: numeric, min: 1, max: 31}
  - {name: month, type: categorical, levels: [jan, feb, mar, apr, may, jun, jul, aug, sep, oct, nov, dec]}
  - {name: duration, type: numeric, min: 0, max: 5000, transform: log1p}
  - {name: campaign, type: numeric, min: 1, max: 60, transform: log1p}
  - {name: pdays, type: numeric, min: -1, max: 1000}
  - {name: previous, type: numeric, min: 0, max: 300, transform: log1p}
  - {name: poutcome, type: categorical, levels: [unknown, other, failure, success]}
  - {name: y, type: label, classes: [no, yes]}
`

// Types is a schema with the types of columns that [Small] has not.
const Types = `dataset: types
rows: 1000
columns:
  - {name: stage, type: ordinal, levels: [none, mild, severe], unknown: zero, missing: mild}
  - {name: smoker, type: boolean, missing: zero}
  - {name: seen, type: date, min: 2020-01-01, max: 2024-12-31, cycles: [day, week, year], missing: zero}
  - {name: told, type: date, layout: "%d.%m.%Y", origin: 2000-01-01, min: 1990-01-01, max: 2024-12-31, missing: 2001-01-01}
  - {name: note, type: text, dimension: 16, missing: zero}
  - {name: age, type: numeric, min: 0, max: 120}
  - {name: sick, type: label, classes: ["no", "yes"]}
`

// TypesHeader is the first line of its tables.
const TypesHeader = "stage,smoker,seen,told,note,age,sick\n"
