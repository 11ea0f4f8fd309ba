import Glibc
import TestTools
import Testing

@testable import room_client

@Suite("Lines of standard input", .timeLimit(.minutes(1)))
struct LineReaderTests {
    @Test("Lines are the same however they come in pieces", arguments: UInt64(1)...20)
    func pieces(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let lines = (0..<20).map { _ in
            String(repeating: "aé ", count: Int.random(in: 0...10, using: &generator))
        }
        var bytes = Array(lines.map { $0 + "\n" }.joined().utf8) + Array("end".utf8)
        var splitter = LineSplitter()
        var read: [LineSplitter.Line] = []
        while !bytes.isEmpty {
            let count = Int.random(in: 1...min(9, bytes.count), using: &generator)
            read += splitter.add(bytes.prefix(count))
            bytes.removeFirst(count)
        }
        #expect(read == lines.map { .whole($0) })
        #expect(splitter.finish() == .whole("end") && splitter.finish() == nil)
    }

    // It was gathered up to its end, and a pipe without one took all memory.
    @Test("Only the beginning of a line that is too long is kept, and the next line counts")
    func tooLong() {
        var splitter = LineSplitter()
        let line = [UInt8](repeating: UInt8(ascii: "x"), count: LineSplitter.longest)
        #expect(splitter.add(line + [10]) == [.whole(String(decoding: line, as: UTF8.self))])
        for _ in 0..<100 { #expect(splitter.add(line).isEmpty) }
        let beginning = LineSplitter.Line.tooLong(String(repeating: "x", count: 40))
        #expect(splitter.add(Array("y\nrotate 90\n".utf8)) == [beginning, .whole("rotate 90")])
        #expect(splitter.add(line + line).isEmpty && splitter.finish() == beginning)
    }

    /// A pipe; its ends are closed with `close`.
    private func makePipe() throws -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        return (ends[0], ends[1])
    }

    // The thread stood in read() for as long as nobody wrote or closed the pipe.
    @Test("Reading stops although the input neither ends nor has a line")
    func stopped() async throws {
        let pipe = try makePipe()
        let reader = try LineReader(pipe.reading)
        _ = write(pipe.writing, "rotate 90\nrot", 13)
        var lines = reader.lines.makeAsyncIterator()
        #expect(await lines.next() == .whole("rotate 90"))
        reader.stop()
        reader.stop()
        #expect(await lines.next() == nil)
        close(pipe.reading)
        close(pipe.writing)
    }

    @Test("The last line counts although it has no end")
    func ended() async throws {
        let pipe = try makePipe()
        let reader = try LineReader(pipe.reading)
        _ = write(pipe.writing, "rotate 90\nrotate 0", 18)
        close(pipe.writing)
        var lines: [LineSplitter.Line] = []
        for await line in reader.lines {
            lines.append(line)
            reader.lineTaken()
        }
        #expect(lines == [.whole("rotate 90"), .whole("rotate 0")])
        close(pipe.reading)
    }

    @Test("A writer that is faster than lines are taken waits")
    func backpressure() async throws {
        let pipe = try makePipe()
        defer {
            close(pipe.reading)
            close(pipe.writing)
        }
        let lines = Array(String(repeating: "rotate 90\n", count: 6000).utf8)
        try #require(write(pipe.writing, lines, lines.count) == lines.count)
        let reader = try LineReader(pipe.reading)
        var iterator = reader.lines.makeAsyncIterator()
        for _ in 0..<16 { _ = await iterator.next() }
        // Time for a thread that does not wait to read everything.
        try await Task.sleep(for: .milliseconds(100))
        #expect(unread(pipe.reading) == 60_000 - 4096)
        for _ in 0..<5984 {
            reader.lineTaken()
            #expect(await iterator.next() == .whole("rotate 90"))
        }
        #expect(unread(pipe.reading) == 0)
        reader.stop()
    }

    /// The bytes that wait in a pipe.
    private func unread(_ pipe: Int32) -> Int {
        var count: Int32 = 0
        _ = ioctl(pipe, UInt(FIONREAD), &count)
        return Int(count)
    }
}
