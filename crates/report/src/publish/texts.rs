//! Serialises a value as JSON in which a function decides about each text.
//!
//! Numbers, times and the variants of enums pass as they are: only free text can reveal something. Bytes are text, too, and are
//! left out. The function is given the text's place, `Type.field`, `Type.variant` or `Type.variant.field`, followed by `.0` or `.1` for the
//! parts of a pair and by `.key` for the keys of a map.

use serde::{Serialize, ser};
use serde_json::{Error, Map, Value};

pub(super) const LEFT_OUT: &str = "(left out)";

pub(super) const PART_LEFT_OUT: char = '…';

pub(super) struct Texts<'j> {
    decide: &'j mut dyn FnMut(&str, &str) -> String,
    place: String,
}

impl<'j> Texts<'j> {
    pub(super) fn new(decide: &'j mut dyn FnMut(&str, &str) -> String) -> Self {
        Self { decide, place: String::new() }
    }

    const fn list(self, pair: bool) -> List<'j> {
        List { texts: self, items: Vec::new(), pair, variant: None }
    }

    fn fields(self, variant: Option<&'static str>) -> Fields<'j> {
        Fields { texts: self, fields: Map::new(), key: String::new(), variant }
    }

    fn at(self, place: impl Into<String>) -> Self {
        Self { place: place.into(), ..self }
    }

    fn part(&mut self, place: String) -> Texts<'_> {
        Texts { decide: &mut *self.decide, place }
    }
}

fn of_variant(variant: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(variant.to_owned(), value)]))
}

macro_rules! numbers {
    ($($name:ident: $type:ty),*) => {
        $(fn $name(self, value: $type) -> Result<Value, Error> { Ok(Value::from(value)) })*
    };
}

impl<'j> ser::Serializer for Texts<'j> {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = List<'j>;
    type SerializeTuple = List<'j>;
    type SerializeTupleStruct = List<'j>;
    type SerializeTupleVariant = List<'j>;
    type SerializeMap = Fields<'j>;
    type SerializeStruct = Fields<'j>;
    type SerializeStructVariant = Fields<'j>;

    numbers! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u16: u16, serialize_u32: u32, serialize_u64: u64
    }

    fn serialize_i128(self, value: i128) -> Result<Value, Error> {
        serde_json::to_value(value)
    }

    fn serialize_u128(self, value: u128) -> Result<Value, Error> {
        serde_json::to_value(value)
    }

    fn serialize_u8(self, _: u8) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_f32(self, value: f32) -> Result<Value, Error> {
        self.serialize_f64(value.into())
    }

    /// JSON has neither NaN nor infinity; figures get theirs back afterwards.
    fn serialize_f64(self, value: f64) -> Result<Value, Error> {
        Ok(Value::from(if value.is_finite() { value } else { 0.0 }))
    }

    fn serialize_char(self, value: char) -> Result<Value, Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<Value, Error> {
        // An empty text has a meaning of its own in many places.
        Ok(Value::String(if value.is_empty() { String::new() } else { (self.decide)(&self.place, value) }))
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_none(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<Value, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, Error> {
        Ok(Value::from(variant))
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, value: &T) -> Result<Value, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Error> {
        Ok(of_variant(variant, value.serialize(self.at(format!("{name}.{variant}")))?))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<List<'j>, Error> {
        Ok(self.list(false))
    }

    fn serialize_tuple(self, _: usize) -> Result<List<'j>, Error> {
        Ok(self.list(true))
    }

    fn serialize_tuple_struct(self, name: &'static str, _: usize) -> Result<List<'j>, Error> {
        Ok(self.at(name).list(true))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<List<'j>, Error> {
        Ok(List { variant: Some(variant), ..self.at(format!("{name}.{variant}")).list(true) })
    }

    /// Types with flattened fields come as maps: their fields are named by the field that holds them. The names are texts, too.
    fn serialize_map(self, _: Option<usize>) -> Result<Fields<'j>, Error> {
        Ok(self.fields(None))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Fields<'j>, Error> {
        Ok(self.at(name).fields(None))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Fields<'j>, Error> {
        Ok(self.at(format!("{name}.{variant}")).fields(Some(variant)))
    }
}

pub(super) struct List<'j> {
    texts: Texts<'j>,
    items: Vec<Value>,
    pair: bool,
    variant: Option<&'static str>,
}

impl List<'_> {
    fn item<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        let place = match self.pair {
            true => format!("{}.{}", self.texts.place, self.items.len()),
            false => self.texts.place.clone(),
        };
        let item = value.serialize(self.texts.part(place))?;
        // Of what is left out of a list one is enough to say so. A pair without its name says nothing.
        let dropped = match &item {
            Value::Null => true,
            Value::String(text) => text == LEFT_OUT && self.items.last() == Some(&item),
            Value::Array(parts) => {
                let name = parts.first().and_then(Value::as_str);
                name.is_some_and(|name| name == LEFT_OUT || name.contains(PART_LEFT_OUT))
            }
            _ => false,
        };
        if self.pair || !dropped {
            self.items.push(item);
        }
        Ok(())
    }

    fn value(self) -> Value {
        let items = Value::Array(self.items);
        match self.variant {
            Some(variant) => of_variant(variant, items),
            None => items,
        }
    }
}

macro_rules! lists {
    ($($trait:ident: $method:ident),*) => {
        $(impl ser::$trait for List<'_> {
            type Ok = Value;
            type Error = Error;

            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<Value, Error> {
                Ok(self.value())
            }
        })*
    };
}

lists! {
    SerializeSeq: serialize_element, SerializeTuple: serialize_element, SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
}

pub(super) struct Fields<'j> {
    texts: Texts<'j>,
    fields: Map<String, Value>,
    key: String,
    variant: Option<&'static str>,
}

impl Fields<'_> {
    fn field<T: ?Sized + Serialize>(&mut self, key: &str, value: &T) -> Result<(), Error> {
        let place = format!("{}.{key}", self.texts.place);
        let value = value.serialize(self.texts.part(place))?;
        self.fields.insert(key.to_owned(), value);
        Ok(())
    }
}

impl ser::SerializeMap for Fields<'_> {
    type Ok = Value;
    type Error = Error;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Error> {
        let key = key.serialize(self.texts.part(format!("{}.key", self.texts.place)))?;
        self.key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
        Ok(())
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        let key = std::mem::take(&mut self.key);
        self.field(&key, value)
    }

    fn end(self) -> Result<Value, Error> {
        Ok(Value::Object(self.fields))
    }
}

macro_rules! structs {
    ($($trait:ident),*) => {
        $(impl ser::$trait for Fields<'_> {
            type Ok = Value;
            type Error = Error;

            fn serialize_field<T: ?Sized + Serialize>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
                self.field(key, value)
            }

            fn end(self) -> Result<Value, Error> {
                let fields = Value::Object(self.fields);
                Ok(match self.variant {
                    Some(variant) => of_variant(variant, fields),
                    None => fields,
                })
            }
        })*
    };
}

structs!(SerializeStruct, SerializeStructVariant);
