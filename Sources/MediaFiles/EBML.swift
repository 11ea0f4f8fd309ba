/// The elements of WebM that we write or read, by EBML's identifier (RFC 8794, RFC 9559; WebM container guidelines).
enum EBMLID: UInt32 {
    case header = 0x1A45_DFA3
    case version = 0x4286
    case readVersion = 0x42F7
    case maximumIDLength = 0x42F2
    case maximumSizeLength = 0x42F3
    case documentType = 0x4282
    case documentTypeVersion = 0x4287
    case documentTypeReadVersion = 0x4285
    case void = 0xEC

    case segment = 0x1853_8067
    case seekHead = 0x114D_9B74
    case seek = 0x4DBB
    case seekID = 0x53AB
    case seekPosition = 0x53AC

    case info = 0x1549_A966
    case timestampScale = 0x2A_D7B1
    case duration = 0x4489
    case muxingApp = 0x4D80
    case writingApp = 0x5741

    case tracks = 0x1654_AE6B
    case trackEntry = 0xAE
    case trackNumber = 0xD7
    case trackUID = 0x73C5
    case trackType = 0x83
    case flagLacing = 0x9C
    case codecID = 0x86
    case contentEncodings = 0x6D80
    case video = 0xE0
    case pixelWidth = 0xB0
    case pixelHeight = 0xBA
    case colour = 0x55B0
    case matrixCoefficients = 0x55B1
    case range = 0x55B9
    case transferCharacteristics = 0x55BA
    case primaries = 0x55BB

    case cluster = 0x1F43_B675
    case timestamp = 0xE7
    case simpleBlock = 0xA3
    case blockGroup = 0xA0
    case block = 0xA1

    case cues = 0x1C53_BB6B
    case cuePoint = 0xBB
    case cueTime = 0xB3
    case cueTrackPositions = 0xB7
    case cueTrack = 0xF7
    case cueClusterPosition = 0xF1
}

extension HeaderBytes {
    /// Adds an identifier, which contains its own length.
    mutating func append(_ id: EBMLID) {
        append(bigEndian: UInt64(id.rawValue), count: (id.rawValue.bitWidth - id.rawValue.leadingZeroBitCount + 7) / 8)
    }

    /// Adds the size of an element's content in as few bytes as possible.
    mutating func append(size: Int) {
        var length = 1
        // All bits set would mean "unknown" (RFC 8794, section 6.2).
        while size >= 1 << (7 * length) - 1 { length += 1 }
        append(bigEndian: UInt64(size) | 1 << UInt64(7 * length), count: length)
    }

    /// Adds an unknown size: the element ends before the first element that cannot be inside it.
    ///
    /// It takes eight bytes, which every reader understands; some readers do not understand the form of one byte.
    mutating func appendUnknownSize() {
        append(bigEndian: 1 << 57 - 1, count: 8)
    }

    /// Adds an element with a number, in as few bytes as possible.
    mutating func append(_ id: EBMLID, _ value: UInt64) {
        let count = max((value.bitWidth - value.leadingZeroBitCount + 7) / 8, 1)
        append(id)
        append(size: count)
        append(bigEndian: value, count: count)
    }

    /// Adds an element that holds a number in eight bytes.
    mutating func append(_ id: EBMLID, fixedLength value: UInt64) {
        append(id)
        append(size: 8)
        append(bigEndian: value, count: 8)
    }

    /// Adds an element that holds text.
    mutating func append(_ id: EBMLID, _ text: String) {
        append(id)
        append(size: text.utf8.count)
        append(text)
    }

    /// Adds an element that holds other elements.
    mutating func append(_ id: EBMLID, of fill: (inout HeaderBytes) -> Void) {
        var content = HeaderBytes()
        fill(&content)
        append(id)
        append(size: content.bytes.count)
        append(content)
    }

    /// Adds `length` bytes, 2 to 128, that readers skip.
    mutating func append(voidOf length: Int) {
        append(.void)
        append(size: length - 2)
        for _ in 0..<length - 2 { append(UInt8(0)) }
    }
}

/// The beginning of an element: its identifier and length.
struct EBMLElement {
    /// The identifier; skip an element whose identifier is not one of ours.
    var id: UInt32
    /// The length of the content, in bytes; `nil` if the content ends before the first element that cannot be inside
    /// it.
    var size: Int?

    /// Whether the element is `id`.
    func `is`(_ id: EBMLID) -> Bool { self.id == id.rawValue }
}

/// The failure of a WebM file, before its position and the number of whole frames before it are known.
enum EBMLFailure: Error {
    case truncated
    case damaged(String)
    case unsupported(String)
    case file(MediaFileError)
}

extension InputFile {
    /// Reads the beginning of an element and moves past it; `nil` at the end of the file.
    mutating func readElement() throws(EBMLFailure) -> EBMLElement? {
        guard try fetch(1) else { return nil }
        let idLength = byte(at: 0).leadingZeroBitCount + 1
        guard idLength <= 4 else { throw .damaged("no element begins with the byte \(byte(at: 0))") }
        guard try fetch(idLength + 1) else { throw .truncated }
        let sizeLength = byte(at: idLength).leadingZeroBitCount + 1
        guard sizeLength <= 8 else { throw .damaged("a size of more than 8 bytes") }
        guard try fetch(idLength + sizeLength) else { throw .truncated }
        let id = UInt32(bigEndian(at: 0, count: idLength))
        let size = variableInteger(at: idLength, count: sizeLength)
        consume(idLength + sizeLength)
        return EBMLElement(id: id, size: size)
    }

    /// The number in the `count` bytes from `index` on, whose first set bit gives their count; `nil` for unknown.
    func variableInteger(at index: Int, count: Int) -> Int? {
        let mask = UInt64(1) << UInt64(7 * count) - 1
        let value = bigEndian(at: index, count: count) & mask
        return value == mask ? nil : Int(value)
    }

    /// Reads the next `count` bytes into memory; `false` if the file ends before.
    mutating func fetch(_ count: Int) throws(EBMLFailure) -> Bool {
        do { return try load(count) } catch { throw .file(error) }
    }

    /// Reads an element's whole content into memory.
    ///
    /// - Returns: Its length, in bytes; at most `limit`.
    mutating func fetchContent(of element: EBMLElement, limit: Int) throws(EBMLFailure) -> Int {
        guard let size = element.size, size <= limit else {
            throw .damaged("an element of \(element.size.map { "\($0)" } ?? "unknown") bytes; \(limit) are the most")
        }
        guard try fetch(size) else { throw .truncated }
        return size
    }

    /// Skips an element's content.
    mutating func passOver(_ element: EBMLElement) throws(EBMLFailure) {
        // These are attached fonts and covers, indices and the like; a gigabyte is more than any file has of them.
        guard let size = element.size, size <= 1 << 30 else {
            throw .damaged("an element of \(element.size.map { "\($0)" } ?? "unknown") bytes")
        }
        let isThere: Bool
        do { isThere = try skip(size) } catch { throw .file(error) }
        guard isThere else { throw .truncated }
    }

    /// The elements in the `range` of the bytes in memory, each with the range of its content.
    func elements(in range: Range<Int>) throws(EBMLFailure) -> [(element: EBMLElement, content: Range<Int>)] {
        var found: [(EBMLElement, Range<Int>)] = []
        var index = range.lowerBound
        while index < range.upperBound {
            let idLength = byte(at: index).leadingZeroBitCount + 1
            guard idLength <= 4, index + idLength < range.upperBound else { throw .damaged("an incomplete element") }
            let sizeLength = byte(at: index + idLength).leadingZeroBitCount + 1
            let start = index + idLength + sizeLength
            guard sizeLength <= 8, start <= range.upperBound,
                let size = variableInteger(at: index + idLength, count: sizeLength),
                size <= range.upperBound - start
            else { throw .damaged("an element that does not fit the one around it") }
            let id = UInt32(bigEndian(at: index, count: idLength))
            found.append((EBMLElement(id: id, size: size), start..<start + size))
            index = start + size
        }
        return found
    }

    /// The number in the content `range`.
    func unsignedInteger(in range: Range<Int>) throws(EBMLFailure) -> UInt64 {
        guard range.count <= 8 else { throw .damaged("a number of \(range.count) bytes") }
        return bigEndian(at: range.lowerBound, count: range.count)
    }
}
