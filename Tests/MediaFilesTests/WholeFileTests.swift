import MediaFiles
import TestTools
import Testing

@Suite("Text files", .timeLimit(.minutes(1)))
struct WholeFileTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func pieces(of text: String, length: Int) throws -> [String] {
        let path = directory("text")
        try store(Array(text.utf8), at: path)
        var pieces: [String] = []
        try WholeFile.readLines(of: path, pieceLength: length) { pieces.append(String(decoding: $0, as: UTF8.self)) }
        return pieces
    }

    // A log was read at once, and refused from 1 GiB on: that of 31 hours.
    @Test(
        "A text file is read in pieces of whole lines, however they lie in what is read at once",
        arguments: ["", "a\n", "a", "\n\n", "first\nsecond\r\n\nthe third is longer\nlast\n", "one\ntwo\ncut off"],
        1...40
    )
    func lines(text: String, length: Int) throws {
        let pieces = try pieces(of: text, length: length)
        #expect(pieces.joined() == text)
        #expect(pieces.dropLast().allSatisfy { $0.utf8.last == UInt8(ascii: "\n") })
        // No piece is longer than what is read at once and the line that began before it.
        let longest = text.utf8.split(separator: UInt8(ascii: "\n")).map(\.count).max() ?? 0
        #expect(pieces.allSatisfy { (1...length + longest).contains($0.utf8.count) })
    }

    @Test("A line without an end is refused before it fills the memory")
    func endlessLine() throws {
        let line = String(repeating: "x", count: 3 << 20)
        #expect(code { _ = try pieces(of: line, length: 1 << 16) } == .damaged)
        #expect(code { try WholeFile.readLines(of: directory("none")) { _ in } } == .notFound)
    }
}
