import MediaCore

/// Walks through a JPEG picture's coded data to check that it is whole, without computing a pixel.
///
/// The library reports only its first warning, and the warning about stray bytes also appears when a scan ends early.
/// After such a warning this check measures each gap, and requires that every block is there with codes that exist. It
/// accepts one scan of all components in baseline coding, as cameras send it; anything else counts as damaged.
struct JPEGScanCheck {
    /// The most stray bytes before a marker: enough to fill a scan or segment up to a multiple of at most 32 bytes.
    static let mostStrayBytes = 32

    private var dcTables = InlineArray<4, JPEGHuffmanTable>(repeating: JPEGHuffmanTable())
    private var acTables = InlineArray<4, JPEGHuffmanTable>(repeating: JPEGHuffmanTable())
    private var components = InlineArray<3, Component>(repeating: Component())
    private var componentCount = 0
    private var width = 0
    private var height = 0
    private var restartInterval = 0
    private var position = 0
    private var bits = 0
    private var bitCount = 0

    private struct Component {
        var identifier = UInt8(0)
        var across = 0
        var down = 0
        var dcTable = 0
        var acTable = 0
    }

    /// Ends the walk early.
    private struct Damage: Error {}

    /// Whether the picture in `bytes` is whole.
    static func isWhole(_ bytes: RawSpan) -> Bool {
        var check = JPEGScanCheck()
        do {
            try check.walk(Span<UInt8>(_bytes: bytes))
            return true
        } catch {
            return false
        }
    }

    private mutating func walk(_ bytes: Span<UInt8>) throws(Damage) {
        guard try nextMarker(bytes) == 0xD8 else { throw Damage() }
        while true {
            let marker = try nextMarker(bytes)
            if marker == 0xD9 { throw Damage() }
            let length = try word(bytes, at: position)
            guard length >= 2, position + length <= bytes.count else { throw Damage() }
            let body = position + 2..<position + length
            position += length
            switch marker {
            case 0xC0, 0xC1: try readFrame(bytes, body)
            case 0xC4: try readTables(bytes, body)
            case 0xDD: restartInterval = try word(bytes, at: body.lowerBound)
            case 0xDA:
                try readScan(bytes, body)
                return try walkScan(bytes)
            case 0xC2...0xCF: throw Damage()
            default: break
            }
        }
    }

    /// Moves to the position after the next marker.
    private mutating func nextMarker(_ bytes: Span<UInt8>) throws(Damage) -> UInt8 {
        var strays = 0
        while position + 1 < bytes.count {
            if bytes[position] != 0xFF {
                strays += 1
                position += 1
            } else if bytes[position + 1] == 0xFF {
                position += 1
            } else if bytes[position + 1] == 0 {
                strays += 2
                position += 2
            } else {
                guard strays <= Self.mostStrayBytes else { throw Damage() }
                position += 2
                return bytes[position - 1]
            }
        }
        throw Damage()
    }

    private func word(_ bytes: Span<UInt8>, at position: Int) throws(Damage) -> Int {
        guard position + 1 < bytes.count else { throw Damage() }
        return Int(bytes[position]) << 8 | Int(bytes[position + 1])
    }

    // MARK: Segments

    private mutating func readFrame(_ bytes: Span<UInt8>, _ body: Range<Int>) throws(Damage) {
        guard body.count >= 6, bytes[body.lowerBound] == 8 else { throw Damage() }
        height = try word(bytes, at: body.lowerBound + 1)
        width = try word(bytes, at: body.lowerBound + 3)
        componentCount = Int(bytes[body.lowerBound + 5])
        guard componentCount == 1 || componentCount == 3, body.count >= 6 + 3 * componentCount, width > 0, height > 0
        else { throw Damage() }
        for index in 0..<componentCount {
            let start = body.lowerBound + 6 + 3 * index
            let sampling = Int(bytes[start + 1])
            guard (1...4).contains(sampling >> 4), (1...4).contains(sampling & 15) else { throw Damage() }
            components[index] = Component(identifier: bytes[start], across: sampling >> 4, down: sampling & 15)
        }
    }

    private mutating func readTables(_ bytes: Span<UInt8>, _ body: Range<Int>) throws(Damage) {
        var start = body.lowerBound
        while start < body.upperBound {
            let kind = bytes[start]
            guard kind & 15 < 4, kind >> 4 < 2, let table = JPEGHuffmanTable(bytes, start + 1..<body.upperBound) else {
                throw Damage()
            }
            if kind >> 4 == 0 { dcTables[Int(kind & 15)] = table } else { acTables[Int(kind & 15)] = table }
            start += 17 + table.count
        }
    }

    private mutating func readScan(_ bytes: Span<UInt8>, _ body: Range<Int>) throws(Damage) {
        guard componentCount > 0, body.count >= 4 + 2 * componentCount, Int(bytes[body.lowerBound]) == componentCount
        else { throw Damage() }
        for index in 0..<componentCount {
            let start = body.lowerBound + 1 + 2 * index
            let (dcTable, acTable) = (Int(bytes[start + 1] >> 4), Int(bytes[start + 1] & 15))
            guard bytes[start] == components[index].identifier, dcTable < 4, acTable < 4 else { throw Damage() }
            // Cameras leave out the standard tables; the library supplies them under the numbers 0 and 1.
            if dcTables[dcTable].count == 0 { dcTables[dcTable] = .standard(isAC: false, isChroma: dcTable > 0) }
            if acTables[acTable].count == 0 { acTables[acTable] = .standard(isAC: true, isChroma: acTable > 0) }
            components[index].dcTable = dcTable
            components[index].acTable = acTable
        }
    }

    // MARK: The scan

    private mutating func walkScan(_ bytes: Span<UInt8>) throws(Damage) {
        // In a scan of one component, blocks are not grouped.
        if componentCount == 1 { (components[0].across, components[0].down) = (1, 1) }
        let (across, down) = (0..<componentCount).reduce((1, 1)) { largest, index in
            (max(largest.0, components[index].across), max(largest.1, components[index].down))
        }
        let units = ((width + 8 * across - 1) / (8 * across)) * ((height + 8 * down - 1) / (8 * down))
        var restarts = 0
        for unit in 0..<units {
            if restartInterval > 0, unit > 0, unit % restartInterval == 0 {
                (bits, bitCount) = (0, 0)
                guard try nextMarker(bytes) == 0xD0 + UInt8(restarts % 8) else { throw Damage() }
                restarts += 1
            }
            for index in 0..<componentCount {
                for _ in 0..<components[index].across * components[index].down {
                    try walkBlock(bytes, components[index].dcTable, components[index].acTable)
                }
            }
        }
        guard try nextMarker(bytes) == 0xD9 else { throw Damage() }
    }

    private mutating func walkBlock(_ bytes: Span<UInt8>, _ dcTable: Int, _ acTable: Int) throws(Damage) {
        let size = try symbol(bytes, dcTables[dcTable])
        guard size <= 11 else { throw Damage() }
        try skip(Int(size), bytes)
        var coefficient = 1
        while coefficient < 64 {
            let symbol = try symbol(bytes, acTables[acTable])
            let (run, size) = (Int(symbol >> 4), Int(symbol & 15))
            if size == 0 {
                guard run == 15 else { return }
                coefficient += 16
                continue
            }
            coefficient += run + 1
            guard coefficient <= 64 else { throw Damage() }
            try skip(size, bytes)
        }
    }

    @inline(__always)
    private mutating func symbol(_ bytes: Span<UInt8>, _ table: borrowing JPEGHuffmanTable) throws(Damage) -> UInt8 {
        var code = 0
        for length in 1...16 {
            code = try code << 1 | bit(bytes)
            if code <= table.lastCodes[length] { return table.values[code + table.offsets[length]] }
        }
        throw Damage()
    }

    private mutating func skip(_ count: Int, _ bytes: Span<UInt8>) throws(Damage) {
        for _ in 0..<count { _ = try bit(bytes) }
    }

    @inline(__always)
    private mutating func bit(_ bytes: Span<UInt8>) throws(Damage) -> Int {
        if bitCount == 0 {
            guard position < bytes.count else { throw Damage() }
            let byte = bytes[position]
            if byte == 0xFF {
                // This is a marker, so the data ends early.
                guard position + 1 < bytes.count, bytes[position + 1] == 0 else { throw Damage() }
                position += 1
            }
            position += 1
            bits = Int(byte)
            bitCount = 8
        }
        bitCount -= 1
        return bits >> bitCount & 1
    }
}

/// A Huffman table derived as in ITU-T T.81, annex C: codes of one length are consecutive.
struct JPEGHuffmanTable {
    /// The highest code of each length; -1 if there is none.
    fileprivate var lastCodes = InlineArray<17, Int>(repeating: -1)
    /// The offset from a code of each length to the place of its value.
    fileprivate var offsets = InlineArray<17, Int>(repeating: 0)
    fileprivate var values = InlineArray<256, UInt8>(repeating: 0)
    /// The number of values; 0 for no table.
    fileprivate(set) var count = 0

    fileprivate init() {}

    /// Reads the table at the beginning of `range`: the number of codes of each length, then the values.
    fileprivate init?(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        guard range.count >= 16 else { return nil }
        var code = 0
        for length in 1...16 {
            let codes = Int(bytes[range.lowerBound + length - 1])
            if codes > 0 {
                offsets[length] = count - code
                code += codes
                count += codes
                lastCodes[length] = code - 1
            }
            guard code <= 1 << length else { return nil }
            code <<= 1
        }
        guard count > 0, count <= 256, range.count >= 16 + count else { return nil }
        for index in 0..<count { values[index] = bytes[range.lowerBound + 16 + index] }
    }

    /// One of the typical tables of ITU-T T.81, annex K.3.
    fileprivate static func standard(isAC: Bool, isChroma: Bool) -> JPEGHuffmanTable {
        let bytes =
            switch (isAC, isChroma) {
            case (false, false): dcLuma
            case (false, true): dcChroma
            case (true, false): acLuma
            case (true, true): acChroma
            }
        return JPEGHuffmanTable(bytes.span, 0..<bytes.count) ?? JPEGHuffmanTable()
    }

    private static let dcLuma: [UInt8] = [
        0x00, 0x00, 0x01, 0x05, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B,
    ]

    private static let acLuma: [UInt8] = [
        0x10, 0x00, 0x02, 0x01, 0x03, 0x03, 0x02, 0x04, 0x03, 0x05, 0x05, 0x04, 0x04, 0x00, 0x00, 0x01,
        0x7D, 0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61,
        0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xA1, 0x08, 0x23, 0x42, 0xB1, 0xC1, 0x15, 0x52, 0xD1,
        0xF0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0A, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x25, 0x26, 0x27,
        0x28, 0x29, 0x2A, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3A, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
        0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5A, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
        0x69, 0x6A, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88,
        0x89, 0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6,
        0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA, 0xC2, 0xC3, 0xC4,
        0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA, 0xE1,
        0xE2, 0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7,
        0xF8, 0xF9, 0xFA,
    ]

    private static let dcChroma: [UInt8] = [
        0x01, 0x00, 0x03, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B,
    ]

    private static let acChroma: [UInt8] = [
        0x11, 0x00, 0x02, 0x01, 0x02, 0x04, 0x04, 0x03, 0x04, 0x07, 0x05, 0x04, 0x04, 0x00, 0x01, 0x02,
        0x77, 0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61,
        0x71, 0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xA1, 0xB1, 0xC1, 0x09, 0x23, 0x33, 0x52,
        0xF0, 0x15, 0x62, 0x72, 0xD1, 0x0A, 0x16, 0x24, 0x34, 0xE1, 0x25, 0xF1, 0x17, 0x18, 0x19, 0x1A,
        0x26, 0x27, 0x28, 0x29, 0x2A, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3A, 0x43, 0x44, 0x45, 0x46, 0x47,
        0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5A, 0x63, 0x64, 0x65, 0x66, 0x67,
        0x68, 0x69, 0x6A, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A, 0x82, 0x83, 0x84, 0x85, 0x86,
        0x87, 0x88, 0x89, 0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0xA2, 0xA3, 0xA4,
        0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA, 0xC2,
        0xC3, 0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9,
        0xDA, 0xE2, 0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7,
        0xF8, 0xF9, 0xFA,
    ]
}
