/// Finds the word that a misspelled one stands for.
package enum Spelling {
    /// Longer words are not compared; no name of an option, a command or a setting has as many letters.
    private static let longest = 64

    /// The known word that `word` may be a misspelling of.
    ///
    /// - Returns: The nearest of `known`, the first of several; `nil` if none is near.
    package static func nearest(to word: String, among known: [String]) -> String? {
        known.filter { isNear(word, $0) }.min { distance(word, $0) < distance(word, $1) }
    }

    /// Whether one word may be a misspelling of the other: they differ in at most two letters, and in at most one of
    /// three.
    package static func isNear(_ first: String, _ second: String) -> Bool {
        guard max(first.count, second.count) <= longest else { return false }
        return distance(first, second) <= min(2, max(first.count, second.count) / 3)
    }

    /// The number of letters to insert, remove, replace or exchange with the next to get from one word to the other
    /// (optimal string alignment); capital letters count as small ones.
    private static func distance(_ first: String, _ second: String) -> Int {
        let (first, second) = (Array(first.lowercased()), Array(second.lowercased()))
        var before: [Int] = []
        var row = Array(0...second.count)
        for line in first.indices {
            var next = [line + 1]
            for column in second.indices {
                let isSame = first[line] == second[column]
                var least = min(row[column] + (isSame ? 0 : 1), row[column + 1] + 1, next[column] + 1)
                if line > 0, column > 0, first[line] == second[column - 1], first[line - 1] == second[column] {
                    least = min(least, before[column - 1] + 1)
                }
                next.append(least)
            }
            (before, row) = (row, next)
        }
        return row[second.count]
    }
}
