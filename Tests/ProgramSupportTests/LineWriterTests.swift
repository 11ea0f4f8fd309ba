import Glibc
import ProgramSupport
import TestTools
import Testing
import Threading

@Suite("Lines that are written in the background", .timeLimit(.minutes(1)))
struct LineWriterTests {
    /// A failed write was ignored, so that the log seemed to be whole.
    @Test("Lines that a full disk does not take are counted, and the note about them too comes when there is room")
    func fullDisk() throws {
        let tried = Monitor([String]())
        let isFull = Monitor(true)
        let log = try LineWriter(name: "log", note: { "(\($0) lines are missing here)\n" }) { text in
            guard !isFull.withLock({ $0 }) else {
                tried.change { $0.append(text) }
                return false
            }
            tried.change { $0.append("written: " + text) }
            return true
        }
        for line in ["a", "b", "c"] { log.add(line) }
        // The first line, and the note in place of the others.
        #expect(tried.wait { $0.count == 3 ? true : nil } == true)
        isFull.change { $0 = false }
        log.add("d")
        log.add("e")
        log.close()
        let note = "\n(3 lines are missing here)\n"
        #expect(tried.withLock { Array($0.dropFirst(3)) } == ["written: " + note, "written: d", "written: e"])
    }

    @Test("A full non-blocking pipe is waited for, and a write that fails is told")
    func descriptors() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (reader, writer) = (ends[0], ends[1])
        _ = fcntl(writer, F_SETFL, O_NONBLOCK)
        let text = String(repeating: "x", count: 200_000)
        let status = Monitor<Int32??>(nil)
        let thread = try WorkerThread(name: "writer") {
            let result = DescriptorOutput.write(text, to: writer)
            status.change { $0 = .some(result) }
        }
        usleep(50_000)
        #expect(status.withLock { $0 == nil })
        var (count, buffer) = (0, [UInt8](repeating: 0, count: 65_536))
        while count < text.utf8.count { count += read(reader, &buffer, buffer.count) }
        #expect(status.wait { $0 } == .some(nil))
        thread.join()
        close(reader)
        close(writer)
        let full = open("/dev/full", O_WRONLY | O_CLOEXEC)
        defer { close(full) }
        #expect(DescriptorOutput.write("x", to: full) == ENOSPC)
    }

    // A subscriber whose output nobody read ended neither after its time nor with a signal.
    @Test("Who adds lines never waits for a reader that reads nothing, and the end gives it up")
    func stalledReader() throws {
        let (isRead, written) = (Monitor(false), Monitor([String]()))
        let writer = try LineWriter(name: "writer", note: { "\($0) lost\n" }) { text in
            _ = isRead.wait { $0 ? true : nil }
            written.change { $0.append(text) }
            return true
        }
        for number in 0..<2000 { writer.add("\(number)\n") }
        // One in hand, unless the thread has not come to it yet, 1,024 that wait, and the lost ones.
        #expect(writer.flush(patience: .milliseconds(20)) == 2000)
        isRead.change { $0 = true }
        // No note counts the last of them yet. The thread may have begun when some were lost already.
        #expect((1...976).contains(writer.flush(patience: .seconds(20))))
        writer.add("end\n")
        #expect(writer.flush(patience: .seconds(20)) == 0)
        let lines = written.withLock { $0 }
        let notes = lines.filter { $0.hasSuffix("lost\n") }.compactMap { Int($0.split(separator: " ")[0]) }
        #expect(lines.count - notes.count + notes.reduce(0, +) == 2001, "each line is written or counted")
        #expect(lines.first == "0\n" && lines.last == "end\n" && (1...2).contains(notes.count))
    }
}
