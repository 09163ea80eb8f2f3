//! Enums of which each value has a word.

/// Defines an enum by a table of its values and their words, and the method that gives a value's word: `name` in `enum Kind: name { … }`.
/// `enum Kind: name, ALL { … }` has the array of all values, too.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* $vis:vis enum $type:ident: $word:ident, ALL { $($(#[$note:meta])* $value:ident => $text:literal,)+ }) => {
        $crate::named! { $(#[$about])* $vis enum $type: $word { $($(#[$note])* $value => $text,)+ } }

        impl $type {
            $vis const ALL: [Self; [$($text),+].len()] = [$(Self::$value),+];
        }
    };
    ($(#[$about:meta])* $vis:vis enum $type:ident: $word:ident { $($(#[$note:meta])* $value:ident => $text:literal,)+ }) => {
        $(#[$about])*
        $vis enum $type {
            $($(#[$note])* $value,)+
        }

        impl $type {
            $vis const fn $word(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                }
            }
        }
    };
}
