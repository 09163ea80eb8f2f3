//! The JSON schemas say what the decoders do: both come from the same definitions, and this holds them to the same files.

use fstone_formats::{native, study};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

/// Checks a value against the part of JSON Schema that the schemas here use; an unknown keyword is a failure of the test.
fn check(schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        let is_met = match keyword.as_str() {
            "description" | "title" | "$schema" | "examples" | "pattern" => true,
            "type" => {
                let names: Vec<&str> = match rule {
                    Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
                    name => name.as_str().into_iter().collect(),
                };
                names.iter().any(|name| match *name {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    name => panic!("type {name}"),
                })
            }
            "required" => {
                rule.as_array().expect("names").iter().all(|name| value.get(name.as_str().expect("a name")).is_some())
            }
            "properties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    if let Some(schema) = rule.get(name) {
                        check(schema, value, &format!("{path}.{name}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    let is_known = schema.get("properties").is_some_and(|known| known.get(name).is_some());
                    match rule {
                        _ if is_known => {}
                        Value::Bool(false) => return Err(format!("{path}: unknown key {name}")),
                        schema => check(schema, value, &format!("{path}.{name}"))?,
                    }
                }
                true
            }
            "items" => {
                for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                    check(rule, value, &format!("{path}[{index}]"))?;
                }
                true
            }
            "anyOf" => rule.as_array().expect("schemas").iter().any(|schema| check(schema, value, path).is_ok()),
            "oneOf" => {
                rule.as_array().expect("schemas").iter().filter(|schema| check(schema, value, path).is_ok()).count()
                    == 1
            }
            "enum" => rule.as_array().expect("values").contains(value),
            "const" => rule == value,
            "minimum" => value.as_f64() >= rule.as_f64(),
            "maximum" => value.as_f64() <= rule.as_f64(),
            "exclusiveMinimum" => value.as_f64() > rule.as_f64(),
            "minLength" => value.as_str().is_some_and(|text| text.len() as u64 >= rule.as_u64().expect("a number")),
            "minItems" => value.as_array().is_some_and(|items| items.len() as u64 >= rule.as_u64().expect("a number")),
            "minProperties" => {
                value.as_object().is_some_and(|keys| keys.len() as u64 >= rule.as_u64().expect("a number"))
            }
            keyword => panic!("the schema uses {keyword}"),
        };
        if !is_met {
            return Err(format!("{path}: {keyword} {rule}"));
        }
    }
    Ok(())
}

fn toml(path: &str) -> Value {
    let text = fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).expect("it is there");
    serde_json::to_value(toml::from_str::<toml::Value>(&text).expect("it is TOML")).expect("TOML fits JSON")
}

#[test]
fn every_study_that_comes_with_fstone_meets_the_schema() {
    let schema = study::schema();
    for entry in fs::read_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../studies")).expect("it is there") {
        let name = entry.expect("readable").file_name().into_string().expect("UTF-8");
        if name.ends_with(".toml") {
            let study = toml(&format!("../../studies/{name}"));
            check(&schema, &study, &name).unwrap_or_else(|why| panic!("{why}"));
        }
        if name.ends_with(".workload") {
            let workload = toml(&format!("../../studies/{name}"));
            check(&native::schema(), &workload, &name).unwrap_or_else(|why| panic!("{why}"));
        }
    }
}

#[test]
fn what_the_decoder_refuses_for_its_shape_the_schema_refuses() {
    let schema = study::schema();
    for name in ["typos", "types", "missing", "empty"] {
        assert!(check(&schema, &toml(&format!("tests/wrong/{name}.toml")), name).is_err(), "{name}");
    }
}

/// Every table of a schema, as "a.b": keys.
fn tables(schema: &Value, path: &str, out: &mut Vec<(String, Vec<String>)>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        out.push((path.to_owned(), properties.keys().cloned().collect()));
        for (name, schema) in properties {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            tables(schema, &path, out);
        }
    }
    for nested in ["items", "additionalProperties"].into_iter().filter_map(|keyword| schema.get(keyword)) {
        let is_named = schema.get("additionalProperties").is_some_and(Value::is_object);
        tables(nested, &if is_named { format!("{path}.NAME") } else { path.to_owned() }, out);
    }
    for schema in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        tables(schema, path, out);
    }
}

#[test]
fn the_reference_has_every_table_of_the_schema() {
    for (schema, reference) in [(study::schema(), study::reference()), (native::schema(), native::reference())] {
        let mut in_schema = Vec::new();
        tables(&schema, "", &mut in_schema);
        // Where a table has alternatives, the reference has the keys of all.
        let mut of_tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, keys) in in_schema {
            of_tables.entry(path).or_default().extend(keys);
        }
        let mut sets: Vec<Vec<String>> = of_tables.into_values().map(|keys| keys.into_iter().collect()).collect();
        sets.retain(|keys| !keys.is_empty());
        sets.sort();
        sets.dedup();
        let mut of_tables: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for key in &reference {
            // An alternative of a table is after a comma.
            let table = key.table.split(',').next().expect("at least one part");
            of_tables.entry(table).or_default().insert(key.name.to_owned());
        }
        let mut documented: Vec<Vec<String>> = of_tables.into_values().map(|keys| keys.into_iter().collect()).collect();
        documented.sort();
        documented.dedup();
        assert_eq!(documented, sets);
        assert!(reference.iter().all(|key| !key.about.is_empty()));
    }
}
