/// Whether no text in `json` has more than 30 combining characters in a row, as the Stream-Safe Text Format of Unicode
/// demands (UAX #15, section 13).
///
/// To compare or hash text, Swift sorts such a run, which takes a time that grows with the square of its length:
/// seconds for one message of the greatest size. Escape sequences (`\u0301`) count as what they stand for.
func isStreamSafe(json: String) -> Bool {
    var run = 0
    var scalars = JSONScalars(json)
    while let scalar = scalars.next() {
        // None below is a combining character.
        guard scalar.value >= 0x300, scalar.properties.canonicalCombiningClass != .notReordered else {
            run = 0
            continue
        }
        run += 1
        if run > mostCombining { return false }
    }
    return true
}

private let mostCombining = 30

/// The characters of a JSON text, with its escape sequences resolved.
///
/// Sequences that are none come out as any character that does not combine: the decoder refuses the text.
private struct JSONScalars: IteratorProtocol {
    private var source: String.UnicodeScalarView.Iterator
    private var highSurrogate: UInt32?

    init(_ json: String) { source = json.unicodeScalars.makeIterator() }

    mutating func next() -> Unicode.Scalar? {
        while let scalar = source.next() {
            guard scalar == "\\" else { return scalar }
            guard let escape = source.next(), escape == "u" else { return "n" }
            guard let unit = hexadecimal() else { return "n" }
            if unit >> 10 == 0xD800 >> 10 {
                highSurrogate = unit
                continue
            }
            guard unit >> 10 == 0xDC00 >> 10, let high = highSurrogate else { return Unicode.Scalar(unit) ?? "n" }
            return Unicode.Scalar(0x10000 + (high & 0x3FF) << 10 + unit & 0x3FF) ?? "n"
        }
        return nil
    }

    /// The next four digits.
    private mutating func hexadecimal() -> UInt32? {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = source.next(), let number = Character(digit).hexDigitValue else { return nil }
            value = value << 4 | UInt32(number)
        }
        return value
    }
}
