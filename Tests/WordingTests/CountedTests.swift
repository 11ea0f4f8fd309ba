import Testing
import Wording

@Suite("Numbers with their nouns")
struct CountedTests {
    @Test("Only one thing is in the singular", arguments: [(0, "0 rooms"), (1, "1 room"), (2, "2 rooms")])
    func number(count: Int, words: String) {
        #expect(counted(count, "room") == words)
    }
}
