import TestTools

/// A WebM file with its simple blocks made groups with a duration and references, as older programs write them.
///
/// Sizes of segment and clusters become unknown; the index and the seek head, whose positions no longer hold, void.
func withBlockGroups(_ file: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var index = 0
    while index < file.count {
        let idLength = file[index].leadingZeroBitCount + 1
        let id = Array(file[index..<index + idLength])
        let sizeLength = file[index + idLength].leadingZeroBitCount + 1
        let content = index + idLength + sizeLength
        let size = file[index + idLength..<content].reduce(0) { $0 << 8 | Int($1) } & (1 << (7 * sizeLength) - 1)
        switch id {
        case [0x18, 0x53, 0x80, 0x67], [0x1F, 0x43, 0xB6, 0x75]:
            result += id + [0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]
            index = content
            continue
        case [0xA3]:
            result += blockGroup(Array(file[content..<content + size]))
        case [0x11, 0x4D, 0x9B, 0x74], [0x1C, 0x53, 0xBB, 0x6B]:
            result += [0xEC, 0x80]
        default:
            result += file[index..<content + size]
        }
        index = content + size
    }
    return result
}

private func blockGroup(_ simpleBlock: [UInt8]) -> [UInt8] {
    var block = simpleBlock
    let isKeyframe = block[3] & 0x80 != 0
    block[3] = 0
    var content: [UInt8] = [0x9B, 0x81, 40]
    content += element(0xA1, block)
    if !isKeyframe { content += element(0xFB, [0xD8]) }
    return element(0xA0, content)
}

private func element(_ id: UInt8, _ content: [UInt8]) -> [UInt8] {
    var result = [id, 0x10 | UInt8(content.count >> 24)]
    for shift in [16, 8, 0] { result.append(UInt8(content.count >> shift & 0xFF)) }
    return result + content
}

/// A WebM file of ffmpeg with a zero byte at the end of the names of its type and codec, as GStreamer writes them.
///
/// Other elements, which readers do not need, become as much shorter.
func withZeroEndedTexts(_ file: [UInt8]) throws -> [UInt8] {
    let changes: [(from: [UInt8], to: [UInt8])] = [
        // The longest size of elements, which has its default, becomes void.
        ([0x42, 0xF3, 0x81, 8], [0xEC, 0x81, 0]),
        ([0x42, 0x82, 0x84] + Array("webm".utf8), [0x42, 0x82, 0x85] + Array("webm".utf8) + [0]),
        // The language.
        ([0x22, 0xB5, 0x9C, 0x83] + Array("und".utf8), [0x22, 0xB5, 0x9C, 0x82] + Array("en".utf8)),
        ([0x86, 0x85] + Array("V_VP8".utf8), [0x86, 0x86] + Array("V_VP8".utf8) + [0]),
    ]
    var result = file
    for (from, to) in changes {
        let places = result.ranges(of: from)
        guard let place = places.first, places.count == 1 else { throw TestFailure("\(places.count) of \(from)") }
        result.replaceSubrange(place, with: to)
    }
    return result
}
